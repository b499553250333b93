"""Trainings of several files, and scripts that share some."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pytest

from dsmigrate.codemod.convert import Conversion, Entry, convert_together
from dsmigrate.codemod.model import Kind, Options, Status
from tests.codemod.converting import HEAD, Converted, converted

ENTRY = f"""{HEAD}
{{imported}}
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{{call}}(model, torch.utils.data.DataLoader(data, batch_size=8), optimizer)
"""
ENGINE = """
def train_one_epoch(net, loader, optimizer):
    for x in loader:
        loss = net(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
CONVERTED = "        net.backward(loss)\n        net.step()\n"


def project(imported: str, call: str, path: str = "train.py", **files: str) -> Converted:
    named = {name.replace("__", "/") + ".py": text for name, text in files.items()}
    return converted(ENTRY.format(imported=imported, call=call), named, path=path)


# -- what is followed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imported", "call", "path"),
    [
        ("import engine", "engine.train_one_epoch", "engine.py"),
        ("import engine as e", "e.train_one_epoch", "engine.py"),
        ("from engine import train_one_epoch as train", "train", "engine.py"),
        ("from engine import *", "train_one_epoch", "engine.py"),
        ("import lib.engine", "lib.engine.train_one_epoch", "lib/engine.py"),
        ("import lib.deep.engine", "lib.deep.engine.train_one_epoch", "lib/deep/engine.py"),
        ("from lib import engine", "engine.train_one_epoch", "lib/engine.py"),
        ("from lib.engine import train_one_epoch", "train_one_epoch", "lib/engine.py"),
        ("import sys\nsys.path.append('tools')\nimport engine", "engine.train_one_epoch", "tools/engine.py"),
        (
            "import sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'tools'))\nimport engine",
            "engine.train_one_epoch",
            "tools/engine.py",
        ),
        ("def late(*given):\n    from engine import train_one_epoch\n    train_one_epoch(*given)", "late", "engine.py"),
    ],
)
def test_every_way_of_importing_is_followed(imported: str, call: str, path: str) -> None:
    found = converted(ENTRY.format(imported=imported, call=call), {path: ENGINE})
    assert found.status is Status.CONVERTED
    assert CONVERTED in found.texts[path]


def test_files_that_are_not_reached_stay() -> None:
    unused = (
        "\ndef alone(net, loader, other):\n    for x in loader:\n        net(x).sum().backward()\n"
        "        other.step()\n"
    )
    found = project(
        "import engine\nimport names",
        "engine.train_one_epoch",
        engine=ENGINE + unused,
        names="import torch\nCLASSES = ['cat']\n",
    )
    assert set(found.texts) == {"train.py", "engine.py"}
    assert unused in found.texts["engine.py"]


@pytest.mark.parametrize(
    ("record", "made"),
    [
        (
            (
                "@dataclasses.dataclass\nclass State:\n    count: typing.ClassVar[int] = 0\n"
                "    model: object\n    optimizer: object = None\n"
            ),
            "State(model, optimizer=optimizer)",
        ),
        (
            "@dataclasses.dataclass(slots=True)\nclass State:\n    model: object\n    optimizer: object = None\n",
            "State(model, optimizer)",
        ),
        (
            "class State(typing.NamedTuple):\n    model: object\n    optimizer: object = None\n",
            "State(optimizer=optimizer, model=model)",
        ),
        ("import types\n", "types.SimpleNamespace(model=model, optimizer=optimizer)"),
        ("State = dict\n", "State(model=model, optimizer=optimizer)"),
    ],
)
def test_records_that_carry_a_training_are_followed(record: str, made: str) -> None:
    loop = (
        f"import dataclasses\nimport typing\n{record}\ndef fit(state, loader):\n"
        "    for x in loader:\n        loss = state.model(x).sum()\n"
        "        state.optimizer.zero_grad()\n        loss.backward()\n"
        "        state.optimizer.step()\n"
    )
    if "dict" in record:
        loop = loop.replace("state.model", 'state["model"]').replace("state.optimizer", 'state["optimizer"]')
    imported = f"from loop import *\ndef run(model, loader, optimizer):\n    fit({made}, loader)"
    found = project(imported, "run", loop=loop)
    assert found.status is Status.CONVERTED
    assert ".backward(loss)" in found.texts["loop.py"]
    assert "zero_grad" not in found.texts["loop.py"]


def test_what_is_handed_on_stands_as_the_arguments_around_it() -> None:
    helper = "\ndef finish(\n    loss,\n    optimizer,\n):\n    loss.backward()\n    optimizer.step()\n"
    call = "        finish(\n            loss,\n            optimizer,\n        )"
    engine = ENGINE.replace("        loss.backward()\n        optimizer.step()", call) + helper
    text = project("import engine", "engine.train_one_epoch", engine=engine).texts["engine.py"]
    assert "            optimizer,\n            engine=net,\n        )\n" in text
    assert "    loss,\n    optimizer,\n    engine,\n):\n" in text


def test_a_function_without_the_model_is_given_the_engine() -> None:
    helper = "\ndef finish(loss, optimizer):\n    loss.backward()\n    optimizer.step()\n"
    engine = (
        ENGINE.replace("        loss.backward()\n        optimizer.step()", "        finish(loss, optimizer)") + helper
    )
    text = project("import engine", "engine.train_one_epoch", engine=engine).texts["engine.py"]
    assert "finish(loss, optimizer, engine=net)" in text
    assert "def finish(loss, optimizer, engine):\n    engine.backward(loss)\n    engine.step()\n" in text


# -- what is said, and where -------------------------------------------------------------------------------------------


def test_a_refusal_of_another_file_names_it() -> None:
    found = project(
        "import engine", "engine.train_one_epoch", engine=ENGINE.replace("backward()", "backward(create_graph=True)")
    )
    assert (found.status, found.texts) == (Status.REFUSED, {})
    assert found.said("MG905", Kind.REFUSED).message.startswith("engine.py:6: ")


def test_a_mark_stands_in_the_file_that_it_is_about() -> None:
    engine = ENGINE.replace("        loss.backward()", "        loss.backward()\n        print(net.reducer)")
    found = project("import engine", "engine.train_one_epoch", engine=engine)
    assert "TODO" not in found.text
    assert "# TODO(dsmigrate MG517)" in found.texts["engine.py"]


def test_a_file_that_is_imported_by_a_script_is_converted_with_that_one() -> None:
    found = converted(
        f"{HEAD}\ndef fit(model, data):\n    model = DDP(model)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "    model(data).sum().backward()\n    optimizer.step()\n"
    )
    assert found.status is Status.UNCHANGED
    assert "convert the script that imports it" in found.said("MG209", Kind.KEPT).message


# -- scripts that share files ------------------------------------------------------------------------------------------

STEPPER = """
class Stepper:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def __call__(self, loss):
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
"""
SCRIPT = f"""{HEAD}
from lab.stepper import Stepper
from lab.start import start

start("nccl")
model = DDP(nn.Linear(4, 4).cuda())
step = Stepper(torch.optim.SGD(model.parameters(), lr=0.1))
for x in torch.utils.data.DataLoader(data, batch_size=8):
    step(model(x.cuda()).mean())
"""
PLAIN = SCRIPT.replace("DDP(nn.Linear(4, 4).cuda())", "nn.Linear(4, 4).cuda()").replace('start("nccl")\n', "")
START = "import torch.distributed as dist\n\ndef start(backend):\n    dist.init_process_group(backend)\n"
FILES = {"lab/__init__.py": "", "lab/stepper.py": STEPPER, "lab/start.py": START}


def together(
    files: Mapping[str, str], *entries: str, others: frozenset[tuple[str, int]] = frozenset()
) -> list[Conversion]:
    every = {path: textwrap.dedent(text) for path, text in {**FILES, **files}.items()}
    return convert_together(
        lambda path: every[path].encode() if path in every else None,
        [Entry(path, Options()) for path in entries],
        dict.fromkeys(others, "other.py"),
    )


def text_of(found: Conversion, path: str) -> str:
    source = found.results[path].new_source
    assert source is not None
    return source.decode()


def test_scripts_that_are_converted_together_share_one_form() -> None:
    found = together({"a.py": SCRIPT, "b.py": SCRIPT}, "a.py", "b.py")
    assert all(one.results[one.entry].status is Status.CONVERTED for one in found)
    assert text_of(found[0], "lab/stepper.py") == text_of(found[1], "lab/stepper.py")
    assert "is_engine" not in text_of(found[0], "lab/stepper.py")


def test_what_another_script_runs_in_its_old_form_stands_under_a_test() -> None:
    alone = together({"a.py": SCRIPT}, "a.py")[0]
    (plain,) = together({"b.py": PLAIN}, "b.py")
    (found,) = together({"a.py": SCRIPT}, "a.py", others=plain.runs)
    assert found.results["a.py"].status is Status.CONVERTED
    stepper = text_of(found, "lab/stepper.py")
    assert "def __call__(self, loss, engine=None):" in stepper
    assert "if ds_compat.is_engine(engine):\n            engine.backward(loss)\n" in stepper
    assert "        else:\n            loss.backward()\n" in stepper
    assert found.compat is not None
    assert found.compat.parts == {"is_engine"}
    assert alone.compat is None


def test_a_process_group_that_another_script_sets_up_too_is_no_obstacle() -> None:
    (other,) = together({"b.py": SCRIPT.replace("DDP(", "(").replace("step(model", "print(model")}, "b.py")
    (found,) = together({"a.py": SCRIPT}, "a.py", others=other.runs | {("lab/start.py", 3)})
    assert found.results["a.py"].status is Status.CONVERTED
    assert "init_distributed" in text_of(found, "lab/start.py")


MEASURED = """
class Stepper:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def __call__(self, loss, parameters):
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return norm
"""


@pytest.mark.parametrize("stepper", [STEPPER, f"import torch\n{MEASURED}"])
def test_a_script_that_is_converted_later_uses_what_the_first_left(stepper: str) -> None:
    given = ", model.parameters())" if "parameters" in stepper else ")"
    script = SCRIPT.replace(".mean())", f".mean(){given}")
    files = {"lab/stepper.py": stepper, "a.py": script, "c.py": script}
    (plain,) = together({**files, "b.py": PLAIN.replace(".mean())", f".mean(){given}")}, "b.py")
    (first,) = together(files, "a.py", others=plain.runs)
    after = {
        path: result.new_source.decode() for path, result in first.results.items() if result.new_source is not None
    }
    (staying,) = together({**files, **after}, "a.py")
    (second,) = together({**files, **after}, "c.py", others=plain.runs | staying.runs)
    assert second.results["c.py"].status is Status.CONVERTED
    assert "lab/stepper.py" not in second.results or second.results["lab/stepper.py"].new_source is None
    assert "engine=model)" in text_of(second, "c.py")
    assert ("ds_compat.keep_grad_norm(model)" in text_of(second, "c.py")) is ("norm" in stepper)
    assert first.results["a.py"].config == second.results["c.py"].config


def test_a_second_run_on_scripts_that_share_files_changes_nothing() -> None:
    (plain,) = together({"b.py": PLAIN}, "b.py")
    (first,) = together({"a.py": SCRIPT}, "a.py", others=plain.runs)
    after = {
        path: result.new_source.decode() for path, result in first.results.items() if result.new_source is not None
    }
    (again,) = together(after, "a.py", others=plain.runs)
    assert again.results["a.py"].status is Status.UNCHANGED
    assert [change.code for change in again.results["a.py"].changes] == ["MG904"]


# -- where ds_compat.py goes -------------------------------------------------------------------------------------------

SAVED = ENTRY + 'torch.save(optimizer.state_dict(), "o.pt")\n'


@pytest.mark.parametrize(
    ("path", "home", "line"),
    [("train.py", "ds_compat.py", "import ds_compat"), ("tools/train.py", "tools/ds_compat.py", "import ds_compat")],
)
def test_the_parts_stand_beside_the_script(path: str, home: str, line: str) -> None:
    text = SAVED.format(imported="from engine import train_one_epoch", call="train_one_epoch")
    folder = path.rpartition("/")[0]
    files = {path: text, f"{folder}/engine.py".lstrip("/"): ENGINE}
    (found,) = together(files, path)
    assert found.compat is not None
    assert found.compat.path == home
    assert f"\n{line}\n" in text_of(found, path)


WRAPPING = """
from torch.nn.parallel import DistributedDataParallel as DDP


def wrapped(model):
    assert model is not None
    return DDP(model)
"""


def test_a_helper_that_wraps_for_other_scripts_too_is_no_longer_called() -> None:
    entry = (
        f"{HEAD}from util.wrapping import wrapped\n\n\ndef main():\n    dist.init_process_group('nccl')\n"
        "    model = nn.Linear(4, 4).cuda()\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    if dist.is_initialized():\n        model = wrapped(model)\n    for x in data:\n"
        "        loss = model(x).sum()\n"
        "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n\n\nmain()\n"
    )
    files = {"util/__init__.py": "", "util/wrapping.py": WRAPPING, "a.py": entry, "b.py": entry}
    (other,) = together(files, "b.py")
    (found,) = together(files, "a.py", others=other.runs - other.makers)
    assert found.results["a.py"].status is Status.CONVERTED
    assert "wrapped" not in text_of(found, "a.py")
    assert "util/wrapping.py" not in found.results or found.results["util/wrapping.py"].new_source is None
    assert found.makers == {("a.py", 9)}
