"""Which way a run goes: branches, loops, errors, ends."""

from __future__ import annotations

from dsmigrate.codemod.analysis.events import Happening
from tests.codemod.analysis.running import run, saved, tree, values


def test_both_arms_of_an_undecided_branch_are_run() -> None:
    assert saved(
        """
        import unread
        args = unread.options()
        if args.a:
            torch.save(1, "x")
        else:
            torch.save(2, "x")
        """
    ) == ["1 if ?8.a", "2 if not ?8.a"]


def test_a_decided_branch_runs_one_arm() -> None:
    assert saved("if False and unknown():\n    torch.save(1, 'x')\nelse:\n    torch.save(2, 'x')") == ["2"]


def test_values_joined_under_a_condition_are_told_apart_under_it() -> None:
    assert saved(
        """
        import argparse
        args = argparse.ArgumentParser().parse_args()
        if args.a:
            x = 1
        else:
            x = 2
        torch.save(x, "x")
        if args.a:
            torch.save(x, "x")
        else:
            torch.save(x, "x")
        if not args.a:
            torch.save(x, "x")
        """
    ) == ["1 if args.a | 2 if not args.a", "1 if args.a", "2 if not args.a", "2 if not args.a"]


MANY = " and ".join(f"unread.option_{number}()" for number in range(14))
"""More than a condition holds."""


def test_what_arms_of_an_unknown_test_leave_is_told_apart_by_it() -> None:
    assert saved(
        f"""
        import unread
        x = 1
        y = 1
        if {MANY}:
            x = 2
            y = 2
        if x == 2:
            torch.save(y, "x")
        else:
            torch.save(y, "x")
        """
    ) == ["2 if ?10", "1 if not ?10"]


PICKED = """
import unread
x = None
for _ in unread.items():
    x = "a"
"""


def test_a_test_for_none_narrows_the_name_until_it_is_bound_anew() -> None:
    body = """
def kept(x):
    if x is None:
        return
    torch.save(x, "behind")
kept(x)
if x is not None:
    torch.save(x, "x")
    x = None if unread.other() else x
    torch.save(x, "anew")
elif not x:
    torch.save(x, "none")
torch.save(x, "after")
"""
    found = saved(PICKED + body)
    assert [one.partition(" if ")[0] for one in found[:2]] == ["'a'", "'a'"]
    assert "None" in found[2]
    assert "'a'" in found[2]
    assert found[3].partition(" if ")[0] == "None"
    assert "'a'" in found[4]


def test_a_test_of_what_something_is_or_has_narrows_the_name() -> None:
    flags = "\n".join(f'parser.add_argument("--{name}", action="store_true")' for name in "abcdefghi")
    found = saved(
        f"""
import argparse, torch, unread
from torch.nn.parallel import DistributedDataParallel
class Plain(unread.Base):
    pass
parser = argparse.ArgumentParser()
{flags}
args = parser.parse_args()
x = Plain()
if args.a and args.b and args.c or args.d and args.e and args.f or args.g and args.h and args.i:
    x = DistributedDataParallel(x)
if not hasattr(x, "module"):
    torch.save(x, "has none")
if not isinstance(x, DistributedDataParallel):
    torch.save(x, "is none")
"""
    )
    assert len(found) == 2
    assert not any(one.startswith("torch.nn.parallel") for one in found), "a wrapper is one and has a module"


def test_what_one_arm_binds_meets_what_is_left_in_the_other() -> None:
    found = saved(PICKED + 'if x is not None:\n    x = "b"\ntorch.save(x, "x")')
    assert "'b'" in found[0]
    assert "'a'" not in found[0]


def test_what_a_class_says_of_its_truth_is_asked_once() -> None:
    body = """
class Counted:
    def __len__(self):
        torch.save(1, "asked")
        return unread.size()
y = None
for _ in unread.items():
    y = Counted()
if y:
    torch.save(2, "x")
"""
    assert len([one for one in saved(PICKED + body) if one.startswith("1")]) == 1


def test_an_early_return_puts_its_opposite_before_what_follows() -> None:
    assert saved(
        """
        def f(rank):
            if rank != 0:
                return
            torch.save(1, "x")
        f(dist.get_rank())
        torch.save(2, "x")
        """
    ) == ["1 if (rank == 0)", "2"]


def test_nested_early_returns_leave_what_no_return_took() -> None:
    assert saved(
        """
        import argparse
        args = argparse.ArgumentParser().parse_args()
        def f():
            if args.a:
                if args.b:
                    return 1
                torch.save(1, "x")
            torch.save(2, "x")
            return 2
        torch.save(f(), "x")
        """
    ) == [
        "1 if (args.a and not args.b)",
        "2 if (not args.a or not args.b)",
        "1 if (args.a and args.b) | 2 if (not args.a or not args.b)",
    ]


def test_an_exit_of_some_ranks_divides_what_follows() -> None:
    assert saved("if dist.get_rank() != 0:\n    sys.exit()\ntorch.save(1, 'x')") == ["1 if (rank == 0)"]


def test_an_exit_of_some_ranks_in_a_function_divides_what_follows_its_call() -> None:
    assert saved(
        """
        def only_first():
            if dist.get_rank() != 0:
                sys.exit(0)
        only_first()
        torch.save(1, "x")
        """
    ) == ["1 if (rank == 0)"]


def test_an_exit_behind_or_divides_what_follows() -> None:
    assert saved("dist.get_rank() == 0 or sys.exit()\ntorch.save(1, 'x')") == ["1 if (rank == 0)"]


def test_an_error_divides_nothing() -> None:
    assert saved(
        """
        loss = torch.rand(1).item()
        if loss > 10:
            print("stopping")
            sys.exit(1)
        torch.save(1, "x")
        """
    ) == ["1"]


def test_an_error_on_some_ranks_divides_what_follows() -> None:
    assert saved("if dist.get_rank() != 0:\n    raise RuntimeError\ntorch.save(1, 'x')") == ["1 if (rank == 0)"]


def test_what_follows_an_error_is_about_runs_without_it() -> None:
    assert saved(
        """
        import argparse
        args = argparse.ArgumentParser().parse_args()
        if args.kind not in ("a", "b"):
            raise ValueError
        if args.kind == "c":
            torch.save(1, "x")
        assert args.kind == "a"
        if args.kind == "b":
            torch.save(2, "x")
        torch.save(3, "x")
        """
    ) == ["3"]


def test_nothing_follows_a_function_that_never_comes_back() -> None:
    assert saved("def f():\n    raise ValueError\nf()\ntorch.save(1, 'x')") == []
    assert saved("def f():\n    sys.exit(1)\nif f():\n    torch.save(1, 'x')\ntorch.save(2, 'x')") == []


def test_a_loop_may_be_left_with_what_it_held_at_any_break() -> None:
    found = values(
        """
        x = 0
        for item in torch.unread():
            x = 1
            if item:
                x = 2
                break
            x = 3
        """
    )
    assert set(found["x"].replace(" if maybe", "").split(" | ")) >= {"2"}
    assert "x~" in found["x"] or {"0", "3"} <= set(found["x"].replace(" if maybe", "").split(" | "))


def test_continue_skips_what_follows_in_the_turn() -> None:
    assert saved(
        """
        import argparse
        args = argparse.ArgumentParser().parse_args()
        for item in torch.unread():
            if args.a:
                continue
            torch.save(1, "x")
        torch.save(2, "x")
        """
    ) == ["1 if not args.a", "2"]


def test_the_else_of_a_loop_is_not_run_behind_a_break() -> None:
    assert saved(
        """
        for item in (1, 2, 3):
            if item == 2:
                break
        else:
            torch.save(1, "x")
        torch.save(2, "x")
        """
    ) == ["2"]
    assert saved("for item in (1, 2):\n    pass\nelse:\n    torch.save(1, 'x')") == ["1"]
    assert saved("while torch.unread():\n    pass\nelse:\n    torch.save(1, 'x')") == ["1"]


def test_items_that_are_written_out_are_gone_over_up_to_the_break() -> None:
    assert saved(
        """
        import argparse
        args = argparse.ArgumentParser().parse_args()
        for item in ("a", "b"):
            if args.kind == item:
                break
            torch.save(item, "x")
        torch.save(item, "x")
        """
    ) == [
        "'a' if not (args.kind == 'a')",
        "'b' if (not (args.kind == 'a') and not (args.kind == 'b'))",
        "'a' if (args.kind == 'a') | 'b' if not (args.kind == 'a')",
    ]


def test_an_endless_loop_is_left_by_its_breaks_alone() -> None:
    assert saved(
        """
        x = 0
        while True:
            x = 1
            if torch.unread():
                break
        torch.save(x, "x")
        """
    ) == ["1"]
    assert saved("while True:\n    pass\ntorch.save(1, 'x')") == []


def test_a_number_that_a_loop_changes_is_a_counter() -> None:
    assert values("n = 0\nfor item in torch.unread():\n    n += 1")["n"] == "n~"
    assert values("n = 0\nwhile n < 10:\n    n = n + 2")["n"] == "n~"


def test_what_a_loop_sets_once_keeps_what_it_was_before() -> None:
    found = values("best = None\nfor item in torch.unread():\n    best = nn.Linear(1, 1)\n")
    assert set(found["best"].split(" | ")) == {"None if maybe", "torch.nn.Linear@8 if maybe"}


def test_a_return_in_a_loop_of_some_ranks_divides_what_follows() -> None:
    assert saved(
        """
        def f():
            for item in torch.unread():
                if dist.get_rank() == 0:
                    return
            torch.save(1, "x")
        f()
        """
    ) == ["1 if maybe on some ranks"]


def test_a_handler_starts_from_whatever_the_body_had_done() -> None:
    found = values(
        """
        x = 1
        try:
            x = 2
            torch.unread()
            x = 3
        except ValueError:
            y = x
        """
    )
    assert set(found["y"].replace(" if maybe", "").split(" | ")) == {"1", "2", "3"}


def test_a_name_that_only_a_handler_leaves_out_is_bound_behind_it() -> None:
    assert (
        values("try:\n    import apex\n    has = True\nexcept ImportError:\n    has = False")["has"]
        == "True if passes(:6) | False if not passes(:6)"
    )
    assert values("try:\n    x = 1\nexcept ValueError:\n    raise")["x"] == "1"


def test_an_error_that_is_caught_ends_nothing() -> None:
    assert saved("try:\n    raise ValueError\nexcept ValueError:\n    torch.save(1, 'x')\ntorch.save(2, 'x')") == [
        "1 if maybe",
        "2",
    ]


def test_the_end_of_the_process_goes_past_handlers_of_errors() -> None:
    script = "try:\n    if dist.get_rank() != 0:\n        sys.exit(0)\nexcept ValueError:\n    pass\ntorch.save(2, 'x')"
    assert saved(script) == ["2 if (rank == 0)"]
    assert saved("try:\n    sys.exit(0)\nexcept:\n    pass\ntorch.save(2, 'x')") == ["2"]


def test_finally_is_run_on_the_ways_out_too() -> None:
    assert saved(
        """
        def f():
            global x
            try:
                return 1
            finally:
                x = 5
                torch.save(2, "x")
        x = 0
        torch.save(f(), "x")
        torch.save(x, "x")
        """
    ) == ["2", "1", "5"]


def test_the_else_of_try_is_run_where_the_body_comes_through() -> None:
    assert saved("try:\n    x = 1\nexcept ValueError:\n    x = 2\nelse:\n    x = 3\ntorch.save(x, 'x')") == [
        "3 if passes(:6) | 2 if not passes(:6)"
    ]


def test_what_every_torch_has_is_there() -> None:
    assert saved(
        """
        has = False
        try:
            if getattr(torch.cuda.amp, "autocast") is not None:
                has = True
        except AttributeError:
            pass
        torch.save(has, "x")
        try:
            from torch.cuda.amp import GradScaler
            has = True
        except ImportError:
            has = False
        torch.save(has, "x")
        """
    ) == ["True", "True"]


def test_a_package_is_there_or_not_for_the_whole_run() -> None:
    assert saved(
        """
        try:
            import apex
            has_apex = True
        except ImportError:
            has_apex = False
        x = 1 if has_apex else 2
        if has_apex:
            torch.save(x, "x")
        """
    ) == ["1 if passes(:7)"]


def test_match_takes_the_first_case_that_fits() -> None:
    assert saved(
        """
        import argparse
        args = argparse.ArgumentParser().parse_args()
        match args.kind:
            case "a" | "b":
                torch.save(1, "x")
            case "c" if args.more:
                torch.save(2, "x")
            case _:
                torch.save(3, "x")
        """
    ) == [
        "1 if ((args.kind == 'a') or (args.kind == 'b'))",
        "2 if ((args.kind == 'c') and args.more)",
        "3 if ((not (args.kind == 'c') or not args.more) and not (args.kind == 'a') and not (args.kind == 'b'))",
    ]


def test_match_of_something_known_runs_one_case() -> None:
    assert saved(
        "match 'b':\n    case 'a':\n        torch.save(1, 'x')\n    case other:\n        torch.save(other, 'x')"
    ) == ["'b'"]


def test_a_walrus_binds_where_it_stands() -> None:
    assert saved("if (n := 3) > 2:\n    torch.save(n, 'x')") == ["3"]


def test_a_conditional_expression_works_both_arms_out_under_their_conditions() -> None:
    assert saved(
        """
        import argparse
        args = argparse.ArgumentParser().parse_args()
        def f(x):
            torch.save(x, "x")
            return x
        y = f(1) if args.a else f(2)
        torch.save(y, "x")
        """
    ) == ["1 if args.a", "2 if not args.a", "1 if args.a | 2 if not args.a"]


def test_and_or_work_out_what_they_reach() -> None:
    assert saved(
        """
        import argparse
        args = argparse.ArgumentParser().parse_args()
        def f(x):
            torch.save(x, "x")
            return x
        args.a and f(1)
        args.a or f(2)
        """
    ) == ["1 if args.a", "2 if not args.a"]


def test_threads_and_spawned_workers_are_run_with_what_they_are_given() -> None:
    assert saved(
        """
        import threading
        import torch.multiprocessing as mp
        def work(rank, world):
            torch.save(world, "x")
        mp.spawn(work, args=(4,), nprocs=4)
        threading.Thread(target=work, args=(0, 7)).start()
        mp.Process(target=work, kwargs={"rank": 0, "world": 9}).start()
        """
    ) == ["4", "7", "9"]


def test_the_end_of_a_worker_does_not_end_the_script() -> None:
    assert saved(
        """
        import torch.multiprocessing as mp
        def work(rank):
            sys.exit()
        mp.spawn(work, nprocs=4)
        torch.save(1, "x")
        """
    ) == ["1"]


def test_modules_that_import_a_name_from_one_another_have_none() -> None:
    found = values("from train import a\nfrom lib import b\nc = a\nd = b", lib="from lib import b\n")
    assert (found["c"], found["d"]) == ("unfound(__main__, a)", "unfound(lib, b)")


def test_a_name_comes_through_modules_that_import_one_another() -> None:
    found = values("from lib import f\na = f()", lib="def f():\n    from train import sys\n    return 3\n")
    assert found["a"] == "3"


def test_a_module_that_a_loop_asks_for_first_takes_nothing_away() -> None:
    files = {"late": "def f(x):\n    return x", "later": "import os\ndef g(x):\n    return os.path.join(x)"}
    script = "import late\nimport later\ntorch.save(1, 'x')\nfor x in os.listdir('.'):\n    later.g(late.f(x))"
    assert saved(script, **files) == ["1"]


def test_an_option_is_an_attribute_of_the_arguments() -> None:
    parser = "import argparse\nparser = argparse.ArgumentParser({})\nparser.add_argument('--many', type=int{})\n"
    rest = "args = parser.parse_args()\ntorch.save(hasattr(args, 'many'), 'x')"
    assert saved(parser.format("", "") + rest) == ["True"]
    assert saved(parser.format("", ", default=argparse.SUPPRESS") + rest) != ["True"]
    assert saved(parser.format("argument_default=argparse.SUPPRESS", "") + rest) != ["True"]


def test_each_of_several_things_has_its_type() -> None:
    assert saved(
        """
        class A: pass
        class B: pass
        one = A() if os.environ["A"] else B()
        torch.save(type(one) in (A, B), "x")
        torch.save(type(one) in (nn.DataParallel, DDP), "x")
        """
    ) == ["True", "False"]


def test_a_call_of_plain_data_ends_the_run() -> None:
    assert saved(
        """
        make = nn.Linear if os.environ["A"] else [1, 2]
        torch.save(make(4, 4), "x")
        "no function"()
        torch.save(1, "x")
        """
    ) == ["torch.nn.Linear@8"]


def test_a_range_of_any_length_is_gone_over() -> None:
    assert saved(f"for x in range({10**30}):\n    pass\ntorch.save(1, 'x')") == ["1"]


def test_tuples_that_hold_what_the_turn_before_made_do_not_grow() -> None:
    found = values(
        """
        import unread
        class Data:
            def __init__(self, images):
                self.images = images
                for name in self.images:
                    pairs = []
                    for image in self.images[name]:
                        pairs.append((name, image))
                    self.images[name] = pairs
        images = {name: {} for name in unread.names()}
        for line in unread.lines():
            images[line.a][line.b] = [line.c]
        data = Data(images)
        last = None
        for turn in range(unread.count()):
            last = (turn, last)
        """
    )
    assert found["last"].count("tuple") <= 2


def test_what_one_branch_of_a_loop_binds_to_one_thing_is_no_counter() -> None:
    assert saved(
        """
        import unread
        config, a, b = unread.config(), 0, 0
        for epoch in range(unread.epochs()):
            if epoch > a:
                a = b
            b = epoch
            if dist.get_rank() == 0:
                kept = {"config": config}
                torch.save(kept["config"], "x")
        """
    ) == ["?8 if (rank == 0)"]


def test_what_only_hands_batches_on_leaves_a_loop_over_it_as_one_over_the_loader() -> None:
    script = """
    class Prefetch:
        def __init__(self, loader):
            self.loader = loader

        def __iter__(self):
            first = True
            for batch in self.loader:
                batch = batch.cuda()
                if not first:
                    yield ready
                first = False
                ready = batch
            yield ready

    model = nn.Linear(2, 2)
    loader = Prefetch(torch.utils.data.DataLoader([1], batch_size=8))
    for batch in loader:
        model(batch).sum().backward()
    """
    assert (
        tree(script, Happening.BATCH, Happening.BACKWARD)
        == """
loop Prefetch
  __iter__()
    loop torch.utils.data.DataLoader
      Batch
  Backward
"""
    )


def test_what_a_generator_makes_is_its_own_in_each_turn_of_a_loop_around() -> None:
    script = """
    class Meter:
        def __init__(self):
            self.count = 0

        def update(self, value):
            self.count += value

    def logged(loader):
        time = Meter()
        for batch in loader:
            time.update(1)
            yield batch
            time.update(2)

    model = nn.Linear(2, 2)
    loader = torch.utils.data.DataLoader([1], batch_size=8)
    for epoch in range(int(sys.argv[1])):
        for batch in logged(loader):
            model(batch).sum().backward()
    """
    (loop,) = {loop.label for one in run(script).of(Happening.BACKWARD) for loop in list(one.block.around())[:1]}
    assert "generator" in str(loop.kind).lower()


ATTRIBUTES_ARE_ITEMS = """
class Settings(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        {alias}

settings = Settings(read(), rate=3)
settings["steps"] = 5
rate, steps = settings.rate, settings.steps
kind = settings.kind
named = "linear" if settings.kind == "linear" else "other"
settings.{name} = 7
{read} = settings["{name}"]
"""


def test_attributes_of_a_dictionarys_class_are_its_items() -> None:
    found = values(ATTRIBUTES_ARE_ITEMS.format(alias="self.__dict__ = self", name="decay", read="decay"))
    assert (found["rate"], found["steps"], found["decay"]) == ("3", "5", "7")
    assert found["kind"] == "item(Settings@12, kind)"
    assert found["named"] == (
        "'linear' if (item(Settings@12, kind) == 'linear') | 'other' if not (item(Settings@12, kind) == 'linear')"
    )


def test_any_of_many_losses_is_a_loss() -> None:
    losses = ", ".join(f'"loss_{number}": out' for number in range(40))
    found = values(f"out = nn.Linear(4, 4)(read())\nlosses = {{{losses}}}\ntotal = sum(losses[name()] for _ in read())")
    assert found["total"].startswith("tensor[data from ")


def test_a_librarys_names_do_not_stand_for_pythons_functions() -> None:
    found = values("from timm.utils import *\nfirst = len([1, 2])\nsecond = sum([1, 2])\nthird = getattr(nn, 'Linear')")
    assert (found["first"], found["third"]) == ("2", "torch.nn.Linear")
    assert found["second"] != "3"  # which other libraries have, too


def test_a_name_of_a_module_that_is_not_read_may_hold_anything() -> None:
    found = values("from settings import AMP\nfrom apex import amp\nfirst = 1 if AMP else 2\nsecond = 1 if amp else 2")
    assert (found["first"], found["second"]) == ("1 if true(settings.AMP) | 2 if not true(settings.AMP)", "1")
    found = values("import settings\nthird = 1 if settings.AMP is None else 2")
    assert found["third"] == "1 if is(settings.AMP, None) | 2 if not is(settings.AMP, None)"


def test_a_call_that_lacks_an_argument_ends_the_process() -> None:
    script = """
    def work(a, b):
        torch.save(a, "a.pt")
    if len(sys.argv) > 1:
        work(1)
    torch.save(2, "b.pt")
    """
    assert saved(script) == ["2"]


def test_what_is_unread_of_each_item_is_its_own() -> None:
    script = """
    import packaging
    old, new = (packaging.parse(one) for one in ("1", torch.__version__))
    if old == new:
        torch.save(1, "a.pt")
    """
    (found,) = saved(script)
    assert found.startswith("1 if")


def test_which_attributes_a_comprehension_leaves_out_is_seen() -> None:
    names = "\n".join(f"            self.x{index} = {index}" for index in range(12))
    script = f"""
    class Holder:
        def __init__(self, optimizer):
            self.optimizer = optimizer
{names}
        def state(self):
            return {{name: value for name, value in self.__dict__.items() if name != "optimizer"}}
    state = Holder(torch.optim.SGD([torch.ones(1)], 0.1)).state()
    torch.save("optimizer" in state, "a.pt")
    """
    assert saved(script) == ["False"]


def test_the_parts_of_a_loss_in_one_tensor_are_of_the_forward() -> None:
    script = """
    model = nn.Linear(2, 2)
    def losses(out):
        parts = torch.zeros(2)
        parts[0] = out.mean()
        parts[1] *= 2
        return parts.sum()
    losses(model(torch.ones(2))).backward()
    """
    (event,) = run(script).of(Happening.BACKWARD)
    assert event["loss"].forwards


def test_what_a_file_says_of_each_key_is_its_own() -> None:
    script = """
    import yaml
    def settings(path, **more):
        return dict(yaml.safe_load(open(path)), **more)
    config = settings("a.yaml")
    if config["a"] == config["b"]:
        torch.save(1, "a.pt")
    """
    (found,) = saved(script)
    assert found.startswith("1 if")
