"""Tests that ask for the wrapper by other ways than ``isinstance(model, DDP)``."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

SAVE = 'torch.save(unwrap(model).state_dict(), "weights.pt")'
ENGINE = "deepspeed.DeepSpeedEngine"
IMPORTS = "from torch.nn.parallel import DataParallel as DP"


def unwrap(test: str, parameters: str = "m") -> str:
    return f"def unwrap({parameters}):\n    return m.module if {test} else m"


PATTERN = "def unwrap(m):\n    match m:\n        case DDP():\n            return m.module\n    return m"
NAME = '"DistributedDataParallel"'
OR = 'or "DeepSpeedEngine" in'


@pytest.mark.parametrize(
    ("helpers", "before", "after"),
    [
        ("KINDS = (DP, DDP)\n" + unwrap("isinstance(m, KINDS)"), "(DP, DDP)", f"(DP, DDP, {ENGINE})"),
        ("KINDS = (DDP,)\n" + unwrap("isinstance(m, KINDS)"), "(DDP,)", f"(DDP, {ENGINE})"),
        ("KINDS = [\n  DP,\n  DDP,\n]\n" + unwrap("type(m) in KINDS"), "KINDS = [", f"  DDP,\n  {ENGINE},\n]"),
        (unwrap("isinstance(m, kinds)", "m, kinds=(DP, DDP)"), "(DP, DDP)", f"(DP, DDP, {ENGINE})"),
        (unwrap("isinstance(m, kind)", "m, kind=DDP"), "isinstance(m, kind)", f"isinstance(m, (kind, {ENGINE}))"),
        ("KIND = DDP\n" + unwrap("isinstance(m, KIND)"), "isinstance(m, KIND)", f"isinstance(m, (KIND, {ENGINE}))"),
        (unwrap("isinstance(m, DP | DDP)"), "DP | DDP", f"DP | DDP | {ENGINE}"),
        (unwrap("any(isinstance(m, k) for k in (DP, DDP))"), "(DP, DDP)", f"(DP, DDP, {ENGINE})"),
        (unwrap("m.__class__ is DDP"), "m.__class__ is DDP", f"m.__class__ in (DDP, {ENGINE})"),
        (unwrap("DDP == type(m)"), "DDP == type(m)", f"type(m) in (DDP, {ENGINE})"),
        (unwrap("type(m) in {DP, DDP}"), "{DP, DDP}", f"{{DP, DDP, {ENGINE}}}"),
        (unwrap(f"type(m).__name__ == {NAME}"), NAME, f"{NAME} {OR} type(m).__name__)"),
        (unwrap("type(m).__name__ == DDP.__name__"), "DDP.__name__", f"DDP.__name__ {OR} type(m).__name__)"),
        (unwrap(f"{NAME} in str(type(m))"), "str(type(m))", f"str(type(m)) {OR} str(type(m)))"),
        (unwrap('m.__class__.__name__.endswith("DataParallel")'), 'lel")', f'lel") {OR} m.__class__.__name__)'),
        (unwrap(f"type(m).__name__ in ('DP', {NAME})"), f"{NAME})", f"{NAME}) {OR} type(m).__name__)"),
        (
            "def kinds():\n    return DP, DDP\n" + unwrap("isinstance(m, kinds())"), "isinstance(m, kinds())",
            f"isinstance(m, (kinds(), {ENGINE}))",
        ),
        (PATTERN, "case DDP", f"case {ENGINE}"),
    ],
)  # fmt: skip
def test_every_spelling_of_the_test(helpers: str, before: str, after: str) -> None:
    migrated = convert(imports=IMPORTS, helpers=helpers, end=SAVE)
    assert after in migrated.section("helpers")
    migrated.said("MG502", before, Kind.CONVERTED)


@pytest.mark.parametrize("register", ["@unwrap.register\ndef _(m: DDP):", "@unwrap.register(DDP)\ndef _(m):"])
def test_a_registration_is_the_engines(register: str) -> None:
    helpers = f"@singledispatch\ndef unwrap(m):\n    return m\n\n{register}\n    return m.module"
    migrated = convert(imports="from functools import singledispatch", helpers=helpers, end=SAVE)
    assert register.replace("DDP", ENGINE) in migrated.section("helpers")


def test_a_registration_is_marked_where_a_model_stays_in_ddp() -> None:
    migrated = convert(
        helpers=PATTERN,
        wrap="model = DDP(Net().cuda())\nteacher = DDP(Net().cuda())",
        end=f"{SAVE}\nprint(unwrap(teacher))",
    )
    assert [c for c in migrated.changes if c.code == "MG502" and c.kind is Kind.TODO], migrated.told()


@pytest.mark.parametrize(
    "helpers",
    [
        "Wrapped = 'DistributedDataParallel'\nprint(Wrapped == 'DistributedDataParallel')",
        "def size(m: DDP | nn.Module) -> int:\n    return len(list(m.parameters()))",
        "A, B = nn.Linear, DDP",
        "print(type(parser).__name__ == 'ArgumentParser')",
        "def kinds():\n    return nn.Linear, DDP",
    ],
)
def test_what_asks_for_no_wrapper_stays(helpers: str) -> None:
    migrated = convert(helpers=helpers)
    assert migrated.section("helpers") == helpers + "\n"
    migrated.silent("MG502")
