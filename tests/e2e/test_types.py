"""The optimizer and scheduler types that are torch's, each against the signature of its class."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from dsmigrate.knowledge import MISSING, TypeFacts, knowledge

from .launching import torch_python

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("facts")]

SIGNATURES = """
import inspect, json, torch
from torch.optim import lr_scheduler
def parameters(kind):
    return {
        name: "required" if p.default is p.empty else p.default
        for name, p in list(inspect.signature(kind.__init__).parameters.items())[2:]
    }
def subclasses(module, base, named):
    return {
        name: parameters(kind) for name, kind in vars(module).items()
        if inspect.isclass(kind) and issubclass(kind, base) and kind is not base and not name.startswith("_")
    }
print(json.dumps({
    "optimizer": subclasses(torch.optim, torch.optim.Optimizer, ""),
    "scheduler": subclasses(lr_scheduler, lr_scheduler.LRScheduler, ""),
}, default=list))
"""


EXEMPT = {
    "optimizer.Adafactor.eps": "its default holds None, which no config can",
    "scheduler.ChainedScheduler": "takes schedulers first, in the place where DeepSpeed passes the optimizer",
}


@pytest.fixture(scope="module")
def signatures() -> dict[str, dict[str, dict[str, Any]]]:
    found = json.loads(subprocess.check_output([torch_python(), "-c", SIGNATURES], text=True))
    assert isinstance(found, dict)
    return found


def torchs_own(kind: str) -> list[TypeFacts]:
    every = knowledge().every_optimizer() if kind == "optimizer" else knowledge().every_scheduler()
    return [facts for facts in every if facts.torch]


@pytest.mark.parametrize("kind", ["optimizer", "scheduler"])
def test_every_class_of_torch_is_documented(kind: str, signatures: dict[str, dict[str, dict[str, Any]]]) -> None:
    look = knowledge().optimizer if kind == "optimizer" else knowledge().scheduler
    assert [name for name in signatures[kind] if look(name) is None] == []


@pytest.mark.parametrize("kind", ["optimizer", "scheduler"])
def test_parameters_and_defaults_are_those_of_torch(
    kind: str, signatures: dict[str, dict[str, dict[str, Any]]]
) -> None:
    wrong = {}
    checked = 0
    for facts in torchs_own(kind):
        real = signatures[kind][facts.name]
        if real.keys() != facts.parameters.keys():
            wrong[facts.path] = sorted(real.keys() ^ facts.parameters.keys())
        for name in real.keys() & facts.parameters.keys():
            parameter = facts.parameters[name]
            stated = "required" if parameter.required else None if parameter.default is MISSING else parameter.default
            checked += 1
            if stated != real[name]:
                wrong[f"{facts.path}.{name}"] = [stated, real[name]]
    print(f"{kind} parameters: {checked}")
    assert wrong.keys() - EXEMPT.keys() == set(), wrong
    assert checked > 40
