"""What a value may be where code that is not read, or another way through the script, may have written it."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.analysis.events import Happening
from tests.codemod.analysis.running import run, saved, values

CONFIG = """
import yaml
class Config(dict):
    def __getattr__(self, name):
        return self[name]
    def __setattr__(self, name, value):
        self[name] = value
"""


@pytest.mark.parametrize("made", ["Config(yaml.safe_load(open('x')))", "yaml.safe_load(open('x'))"])
def test_what_is_written_on_some_ways_is_what_it_was_on_the_others(made: str) -> None:
    (found,) = saved(
        f"{CONFIG}\nconfig = {made}\nif len(sys.argv) == 1:\n    config['m'] = False\n"
        "if config['m']:\n    torch.save(1, 'x')"
    )
    assert "not (len(argv()) == 1)" in found


def test_an_attribute_that_is_written_on_some_ways_is_the_class_s_on_the_others() -> None:
    assert saved(
        """
        class Trainer:
            ready = True
            def __init__(self):
                if len(sys.argv) == 1:
                    self.ready = False
        if Trainer().ready:
            torch.save(1, "x")
        """
    ) == ["1 if not (len(argv()) == 1)"]


def test_a_write_to_one_of_two_things_reaches_it_under_its_condition() -> None:
    assert saved(
        CONFIG
        + """
config = Config(yaml.safe_load(open("x")))
if len(sys.argv) == 1:
    config = Config(yaml.safe_load(open("y")))
config.m = True
if config.m:
    torch.save(1, "x")
"""
    ) == ["1"]


@pytest.mark.parametrize(
    "script",
    [
        "from yacs.config import CfgNode\nc = CfgNode()\nc.m = False\nc.merge_from_file('x')\nm = c.m",
        "import yacs\nc = yacs.Node()\nc.a = yacs.Node()\nc.a.m = False\nc.merge_from_file('x')\nm = c.a.m",
        "import yaml\nc = {'m': False}\nc.update(yaml.safe_load(open('x')))\nm = c['m']",
        "import yaml\nc = {'m': False}\nfor k, v in yaml.safe_load(open('x')).items():\n    c[k] = v\nm = c['m']",
    ],
)
def test_what_is_not_read_may_change_a_setting(script: str) -> None:
    assert values(script)["m"].startswith("setting(m, False")


def test_a_group_is_there_where_one_was_made() -> None:
    (found,) = saved(
        "if len(sys.argv) == 1:\n    dist.init_process_group('nccl')\nif dist.is_initialized():\n    torch.save(1, 'x')"
    )
    assert found == "1 if (len(argv()) == 1)"


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("isinstance(5, numbers.Number)", "True"),
        ("isinstance([1], collections.abc.Sized)", "True"),
        ("isinstance((1,), collections.abc.Hashable)", "True"),
        ("isinstance('x', collections.abc.Mapping)", "False"),
        ("isinstance(Called(), typing.Callable)", "True"),
        ("isinstance(nn.Module, str)", "False"),
        ("isinstance(torch.optim.SGD, (str, dict))", "False"),
        ("isinstance(torch.optim.SGD, type)", "True"),
        ("isinstance(torch.__version__, str)", "isinstance(?, builtins.str)"),
        ("isinstance(Called, Called)", None),
        ("isinstance(Called, collections.abc.Callable)", "True"),
        ("isinstance(Called().__call__, str)", "False"),
        ("issubclass(Called, Called)", "True"),
        ("issubclass(Called, str)", "False"),
        ("[1, 2] == sorted([1, 2])", None),
    ],
)
def test_abstract_classes_of_python_are_known(asked: str, answer: str | None) -> None:
    found = values(
        f"import collections.abc, numbers, typing\nclass Called:\n    def __call__(self):\n        pass\nx = {asked}"
    )["x"]
    assert found not in {"True", "False"} if answer is None else found == answer


def test_a_function_that_returns_on_some_way_comes_back() -> None:
    assert saved(
        """
        import importlib
        def found(names):
            for name in names:
                try:
                    return importlib.import_module(name)
                except ImportError:
                    pass
            raise ImportError
        found(sys.argv)
        torch.save(1, "x")
        """
    ) == ["1"]


def test_of_two_unknown_conditions_none_is_the_other() -> None:
    script = """
    import unread
    many = unread.many()
    def is_main():
        return not flag or (flag and rank % unread.count() == 0)
    flag = False
    for one in range(9):
        if many[one] and not (many[one + 1] or unread.f(one)) and many[one] != many[one + 2]:
            flag = unread.g(one)
    rank = unread.start() + dist.get_rank()
    if is_main():
        torch.save(1, "x")
    """
    (event,) = run(script).of(Happening.SAVE)
    assert event.condition.varies


@pytest.mark.parametrize(
    "write",
    [
        "model.module.scale.data.clamp_(0, 4)",
        "model.module.scale.data = torch.clamp(model.module.scale.data, 0, 4)",
        "model.module.scale.data[0] = 3",
        "with torch.no_grad():\n    model.module.head.scale.mul_(2)",
    ],
)
def test_what_is_written_in_place_in_an_unread_model_is_a_weight(write: str) -> None:
    script = f"from zoo import build\nmodel = DDP(build().cuda())\n{write}"
    assert any(True for _ in run(script).of(Happening.WEIGHT_WRITE))


def test_a_copy_of_an_unread_model_is_no_part_of_it_even_before_it_is_wrapped() -> None:
    script = """
    import copy
    from zoo import build
    model = build()
    average = copy.deepcopy(model)
    model = DDP(model)
    for a, b in zip(average.state_dict().values(), model.state_dict().values()):
        a.copy_(b)
    """
    (event,) = run(script).of(Happening.WEIGHT_WRITE)
    assert "copy" in str(event)


def test_a_default_dictionary_holds_what_it_makes_for_unknown_keys() -> None:
    assert (
        "1"
        in saved(
            """
        import collections, unread
        groups = collections.defaultdict(list)
        for name in unread.names():
            groups[name].append(1)
        for name, group in groups.items():
            torch.save(group[0], "x")
        """
        )[0]
    )
