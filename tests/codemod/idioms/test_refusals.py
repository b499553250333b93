"""What is not converted, with its reason and line; and what looks alike, and is no reason."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import HEAD, Converted, converted

OPTIONS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
parser.add_argument("--name", default="a")
args = parser.parse_args()
"""
MODEL = """
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
"""
DATA = """
loader = torch.utils.data.DataLoader(data, batch_size=8)
"""
LOOP = """
for x, y in loader:
    optimizer.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    optimizer.step()
"""


def script(*, imports: str = "", model: str = MODEL, loop: str = LOOP, end: str = "") -> str:
    return f'{HEAD}{imports}\n{OPTIONS}dist.init_process_group("nccl")\n{model}{DATA}{loop}{end}'


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def refused(text: str, code: str, part: str, says: str = "") -> Converted:
    found = converted(text)
    assert found.status is Status.REFUSED, [(change.code, change.message) for change in found.changes]
    (change,) = found.changes
    assert (change.code, change.line) == (code, line_of(text, part))
    assert says.lower() in f"{change.message} {change.reason}".lower()
    assert len(change.message) <= 120
    return found


# -- no reason to refuse -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "end"),
    [
        ("import torch.distributed.rpc as rpc", 'def never():\n    rpc.init_rpc("worker")\n'),
        ("import horovod.torch as hvd", ""),
        ("import deepspeed", 'if __name__ != "__main__":\n    model = deepspeed.initialize(model=model)[0]\n'),
        ("", "def tuned():\n    other = torch.optim.SGD(model.parameters(), lr=1)\n    other.step()\n"),
        ("", "sampler = nn.Embedding(3, 4, sparse=True)\n"),
        ("", 'print(os.path.join("a", "b"), ", ".join(["a"]))\n'),
        ("from accelerate.utils import set_seed", "set_seed(3)\n"),
    ],
)
def test_what_nobody_calls_or_the_training_has_not_refuses_nothing(imports: str, end: str) -> None:
    found = converted(script(imports=imports, end=end))
    assert found.status in {Status.CONVERTED, Status.CONVERTED_WITH_TODOS}


def test_a_helper_module_is_read_for_the_function_that_is_used() -> None:
    helper = """
        import torch, horovod.torch as hvd
        def mean(x):
            return x.mean()
        def profile(model):
            hvd.init()
            torch.autograd.grad(model(1).sum(), model.weight, create_graph=True)
        if __name__ == "__main__":
            profile(None)
        """
    found = converted(
        script(
            imports="from tools import mean",
            loop=LOOP.replace(".mean()", "").replace("(model(x) - y).pow(2)", "mean((model(x) - y).pow(2))"),
        ),
        {"tools.py": helper},
    )
    assert found.status is Status.CONVERTED


def test_optimizers_of_which_a_run_has_one_are_one() -> None:
    chosen = """
if args.name == "a":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
"""
    assert converted(script(model=MODEL + chosen)).status is Status.CONVERTED


def test_a_teacher_that_nobody_trains_is_no_second_model() -> None:
    teacher = (
        MODEL + "teacher = DDP(nn.Linear(4, 4).cuda())\nfor p in teacher.parameters():\n    p.requires_grad = False\n"
    )
    loop = LOOP.replace("(model(x) - y)", "(model(x) - teacher(x))")
    assert converted(script(model=teacher, loop=loop)).status is not Status.REFUSED


def test_trainings_one_after_the_other_are_each_one() -> None:
    text = f"""
{HEAD}
def demo(kind):
    model = DDP(kind(4, 4).cuda())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for x in data:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
dist.init_process_group("nccl")
demo(nn.Linear)
demo(nn.Bilinear)
"""
    assert converted(text).status is Status.CONVERTED


# -- several models and optimizers -------------------------------------------------------------------------------------

GAN = """
g, d = nn.Linear(4, 4).cuda(), nn.Linear(4, 1).cuda()
g = DDP(g)
d = DDP(d)
g_opt = torch.optim.Adam(g.parameters())
d_opt = torch.optim.Adam(d.parameters())
"""
TURNS = """
for x, y in loader:
    d_opt.zero_grad()
    d(x).mean().backward()
    d_opt.step()
    g_opt.zero_grad()
    d(g(x)).mean().backward()
    g_opt.step()
"""


def test_models_that_are_trained_in_turns_are_refused() -> None:
    refused(script(model=GAN, loop=TURNS), "MG901", "d = DDP(d)", "two models")
    helper = GAN.replace("DDP(g)", "wrapped(g)").replace("DDP(d)", "wrapped(d)")
    found = converted(script(imports="def wrapped(net):\n    return DDP(net)\n", model=helper, loop=TURNS))
    assert [change.code for change in found.changes] == ["MG901"]


def test_a_second_optimizer_is_refused() -> None:
    text = script(
        model=MODEL + "other = torch.optim.SGD(model.parameters(), lr=1)\n",
        loop=LOOP + "    other.step()\n",
    )
    refused(text, "MG902", "other.step()", "a second optimizer is stepped")


@pytest.mark.parametrize(
    "made",
    ["optimizers = [torch.optim.SGD(model.parameters(), lr=1), torch.optim.AdamW(model.parameters())]",
     "optimizers = [torch.optim.SGD([p], lr=1) for p in model.parameters()]"],
)  # fmt: skip
def test_a_list_of_optimizers_is_refused(made: str) -> None:
    loop = (
        "\nfor x, y in loader:\n    (model(x) - y).sum().backward()\n    for one in optimizers:\n"
        "        one.step()\n        one.zero_grad()\n"
    )
    found = converted(script(model=f"\nmodel = DDP(nn.Linear(4, 4).cuda())\n{made}\n", loop=loop))
    assert [change.code for change in found.changes] == ["MG902"]


def test_what_may_be_a_schedule_instead_is_no_optimizer() -> None:
    made = "optimizer = torch.optim.lr_scheduler.StepLR(optimizer, 2) if args.amp else optimizer\n"
    refused(script(model=f"{MODEL}{made}"), "MG902", "optimizer.step()", "a schedule of the learning rate")


# -- other kinds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "line", "what"),
    [
        ("import torch.distributed.rpc as rpc", 'rpc.init_rpc("worker")', "RPC"),
        ("import dgl.distributed", 'dgl.distributed.initialize("ip.txt")', "dgl.distributed"),
        ("import horovod.torch as hvd", "hvd.init()", "Horovod"),
        ("from torch.distributed.fsdp import fully_shard", "fully_shard(model)", "FSDP"),
    ],
)
def test_another_kind_of_distributed_training_is_refused(imports: str, line: str, what: str) -> None:
    refused(script(imports=imports, model=f"{MODEL}{line}\n"), "MG903", line, what)


def test_optimizers_over_rpc_and_local_sgd_are_refused() -> None:
    made = MODEL.replace(
        "torch.optim.AdamW(model.parameters(), lr=0.1)", "DistributedOptimizer(torch.optim.SGD, model.parameters())"
    )
    refused(
        script(imports="from torch.distributed.optim import DistributedOptimizer", model=made),
        "MG903",
        "DistributedOptimizer(t",
        "DistributedOptimizer",
    )


@pytest.mark.parametrize("manager", ["model.join()", "Join([model])"])
def test_uneven_inputs_are_refused(manager: str) -> None:
    loop = f"\nwith {manager}:\n" + "\n".join(f"    {line}" for line in LOOP.strip().splitlines()) + "\n"
    refused(script(imports="from torch.distributed.algorithms.join import Join", loop=loop), "MG903", manager, "Join")


@pytest.mark.parametrize("layer", ["nn.Embedding(10, 4, sparse=True)", "torch.nn.EmbeddingBag(10, 4, sparse=True)"])
def test_sparse_gradients_are_refused(layer: str) -> None:
    refused(
        script(model=MODEL.replace("nn.Linear(4, 4)", f"nn.Sequential({layer}, nn.Linear(4, 4))")),
        "MG903",
        layer,
        "sparse",
    )


def test_a_group_of_its_own_is_refused() -> None:
    model = "\npair = dist.new_group([0, 1])" + MODEL.replace("cuda())", "cuda(), process_group=pair)", 1)
    refused(script(model=model), "MG903", "process_group=pair", "process group")


def test_a_branch_with_another_kind_is_marked() -> None:
    model = """
model = nn.Linear(4, 4).cuda()
if args.amp:
    model = FSDP(model)
else:
    model = DDP(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
"""
    text = script(imports="from torch.distributed.fsdp import FullyShardedDataParallel as FSDP", model=model)
    found = converted(text)
    assert found.said("MG113", Kind.TODO).line == line_of(text, "FSDP(model)")
    assert "FSDP(model)" in found.text


def test_deepspeed_that_is_there_already_is_refused() -> None:
    end = 'if args.amp:\n    model = deepspeed.initialize(model=model, config="c.json")[0]\n'
    refused(script(imports="import deepspeed", end=end), "MG904", "deepspeed.initialize(", "already")


# -- backward and step -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", ["given", "inputs=[model.module.weight]", "create_graph=True"])
def test_a_backward_of_another_form_is_refused(arguments: str) -> None:
    refused(script(loop=LOOP.replace("backward()", f"backward({arguments})")), "MG905", f"loss.backward({arguments})")


def test_gradients_of_gradients_are_refused_and_a_penalty_of_data_is_not() -> None:
    line = "    (slope,) = torch.autograd.grad(loss, x, create_graph=True)\n"
    refused(
        script(loop=LOOP.replace("    loss.backward()", f"{line}    (loss + slope.norm()).backward()")),
        "MG905",
        "create_graph=True",
        "gradients of gradients",
    )
    assert (
        converted(
            script(
                loop=LOOP.replace(
                    "    loss.backward()", line.replace(", create_graph=True", "") + "    loss.backward()"
                )
            )
        ).status
        is not Status.REFUSED
    )


def test_two_backwards_over_one_graph_are_refused_and_over_two_are_not() -> None:
    shared = LOOP.replace("    loss.backward()", "    loss.backward(retain_graph=True)\n    (2 * loss).backward()")
    refused(script(loop=shared), "MG905", "retain_graph=True", "one graph")
    parted = LOOP.replace("    loss.backward()", "    loss.backward()\n    model(y).sum().backward()")
    assert converted(script(loop=parted)).status is not Status.REFUSED
    assert (
        converted(script(loop=LOOP.replace("backward()", "backward(retain_graph=True)"))).status is not Status.REFUSED
    )


@pytest.mark.parametrize("call", ["optimizer.step(closure)", "optimizer.step(closure=lambda: 0)"])
def test_a_closure_is_refused(call: str) -> None:
    loop = LOOP.replace("optimizer.step()", call).replace(
        "    optimizer.zero_grad()", "    closure = lambda: 0\n    optimizer.zero_grad()"
    )
    refused(script(loop=loop), "MG906", call)


# -- scripts without a training ----------------------------------------------------------------------------------------


def test_a_script_without_processes_is_left_alone() -> None:
    found = converted(
        f"{HEAD}\nmodel = nn.Linear(4, 4)\noptimizer = torch.optim.AdamW(model.parameters())\n{DATA}{LOOP}"
    )
    assert found.status is Status.UNCHANGED
    assert "nothing in this file wraps a model" in found.said("MG209", Kind.KEPT).reason


def test_a_converted_script_is_left_alone() -> None:
    first = converted(script())
    again = converted(first.text)
    assert again.status is Status.UNCHANGED
    assert [(change.code, change.kind) for change in again.changes] == [("MG904", Kind.KEPT)]


def test_an_evaluation_of_a_wrapped_model_is_left_alone() -> None:
    found = converted(script(loop="\nfor x, y in loader:\n    print(model(x))\n"))
    assert found.status is Status.UNCHANGED
    assert "no backward" in found.said("MG209", Kind.KEPT).reason


def test_a_wrap_that_is_not_reached_is_said() -> None:
    model = """
distributed = False
model = nn.Linear(4, 4)
if distributed:
    dist.init_process_group("nccl")
    model = DDP(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
"""
    found = converted(HEAD + OPTIONS + model + DATA + LOOP)
    assert found.status is Status.UNCHANGED
    assert "under `if distributed`, is not reached" in found.said("MG209", Kind.KEPT).reason


def test_a_training_in_what_is_not_read_is_said() -> None:
    tools = "import torch.distributed as dist\ndef start():\n    dist.init_process_group('nccl')\n"
    found = converted(
        "import importlib, sys, tools\ntools.start()\nimportlib.import_module(sys.argv[1]).main()\n",
        {"tools.py": tools},
    )
    assert found.status is Status.UNCHANGED
    assert found.said("MG209", Kind.KEPT).reason == "train.py:3 imports a module that is known only when it runs"


def test_a_module_of_the_project_that_is_imported_by_a_foreign_name_is_said() -> None:
    tools = "import torch.distributed as dist\ndef start():\n    dist.init_process_group('nccl')\n"
    found = converted(
        "import tools\nfrom lab.vision.loops.fit import fit\ntools.start()\nfit()\n",
        {"tools.py": tools, "loops/fit.py": "def fit():\n    loss().backward()\n"},
    )
    said = "train.py:2 imports lab.vision.loops.fit, which is not found: is it loops/fit.py?"
    assert found.said("MG209", Kind.KEPT).reason == said


def test_a_file_that_only_defines_things_says_so() -> None:
    text = (
        f"{HEAD}\ndef train(data):\n" + "\n".join(f"    {line}" for line in (MODEL + LOOP).strip().splitlines()) + "\n"
    )
    found = converted(text)
    assert found.status is Status.UNCHANGED
    assert found.said("MG209", Kind.KEPT).line == line_of(text, "import DistributedDataParallel")


def test_another_framework_is_named() -> None:
    loop = LOOP.replace("loss.backward()", "accelerator.backward(loss)")
    text = script(
        imports="from accelerate import Accelerator",
        model=(
            "\naccelerator = Accelerator()\nmodel = nn.Linear(4, 4)\n"
            "optimizer = torch.optim.SGD(model.parameters())\n"
            "model, optimizer = accelerator.prepare(model, optimizer)\n"
        ),
        loop=loop,
    )
    refused(text, "MG907", "accelerator = Accelerator()", "accelerate drives the training")


def test_a_wrap_that_is_not_read_is_refused_at_the_loop() -> None:
    text = script(
        imports="from elsewhere import built",
        model="\nmodel = built()\noptimizer = torch.optim.SGD(model.parameters())\n",
    )
    refused(text, "MG912", "loss.backward()", "no DistributedDataParallel")


def test_a_loop_that_is_not_read_is_refused_at_the_wrap() -> None:
    text = script(
        imports="from elsewhere import train",
        loop="\ntrain(model, optimizer, loader)\n",
        end="def other(loss):\n    loss.backward()\n",
    )
    refused(text, "MG910", "model = DDP(", "backward")


def test_gradients_that_the_script_averages_itself_are_named() -> None:
    loop = LOOP.replace(
        "    optimizer.step()",
        "    for p in model.parameters():\n        dist.all_reduce(p.grad)\n    optimizer.step()",
    )
    text = script(model="\nmodel = nn.Linear(4, 4)\noptimizer = torch.optim.SGD(model.parameters())\n", loop=loop)
    refused(text, "MG912", "dist.all_reduce(p.grad)", "averages gradients itself")


def test_a_training_that_cannot_be_followed_is_refused() -> None:
    text = (
        f"{HEAD}\nimport registry\nclass Runner:\n    def run(self):\n"
        "        model = DDP(self.model)\n        self.loss(model).backward()\ndef main():\n"
        "    registry.started(1)\nmain()\n"
    )
    refused(text, "MG912", "import DistributedDataParallel", "cannot be followed")


def test_an_optimizer_that_is_not_seen_is_refused() -> None:
    text = script(
        imports="from elsewhere import stepped",
        model="\nmodel = DDP(nn.Linear(4, 4))\n",
        loop="\nfor x, y in loader:\n    model(x).sum().backward()\n    stepped()\n",
    )
    assert [change.code for change in converted(text).changes] == ["MG911"]


@pytest.mark.parametrize(
    "loop",
    [
        "train(model, optimizer, loader)",
        "Trainer(model=model, optimizers=(optimizer, None)).fit(loader)",
        "for x, y in loader:\n    train(model(x).sum(), optimizer, parameters=model.parameters())",
    ],
)
def test_a_training_that_unread_code_runs_is_refused_at_the_wrap(loop: str) -> None:
    refused(
        script(imports="from elsewhere import train, Trainer", loop=f"\n{loop}\n"),
        "MG910",
        "model = DDP(",
        "is not read",
    )


@pytest.mark.parametrize(
    ("imports", "made", "name"),
    [
        ("import pytorch_lightning as pl", 'pl.Trainer(strategy="ddp").fit(model)', "lightning"),
        ("from lightning.fabric import Fabric", "Fabric().setup(model)", "lightning"),
    ],
)
def test_a_framework_is_named_where_ddp_is_only_imported(imports: str, made: str, name: str) -> None:
    found = converted(f"{HEAD}{imports}\nmodel = nn.Linear(4, 4)\n{made}\n")
    assert found.status is Status.REFUSED
    assert name in found.said("MG907").message


def test_a_critic_that_is_not_wrapped_trains_beside_the_model() -> None:
    model = MODEL + "critic = nn.Linear(4, 1).cuda()\nother = torch.optim.SGD(critic.parameters(), lr=0.1)\n"
    loop = """
for x, y in loader:
    other.zero_grad()
    critic(model(x).detach()).mean().backward()
    other.step()
    optimizer.zero_grad()
    critic(model(x)).mean().backward()
    optimizer.step()
"""
    found = converted(script(model=model, loop=loop))
    assert "    critic(model(x).detach()).mean().backward()\n    other.step()\n" in found.text
    assert "    model.backward(critic(model(x)).mean())\n    model.step()\n" in found.text
    assert not found.todos


# -- communication hooks -----------------------------------------------------------------------------------------------

HOOKS = (
    "from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, default_hooks as hooks, "
    "powerSGD_hook as power, register_ddp_comm_hook\n"
)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("model.register_comm_hook(None, hooks.fp16_compress_hook)", "fp16"),
        ("model._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)", "fp16"),
        ("register_ddp_comm_hook(DDPCommHookType.BF16_COMPRESS, model)", "bf16"),
        ("model._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)", None),
        ("model.register_comm_hook(None, hooks.allreduce_hook)", None),
    ],
)
def test_hooks_that_round_are_in_the_config_by_whatever_name(line: str, kind: str | None) -> None:
    found = converted(script(imports=HOOKS, model=f"{MODEL}{line}\n"))
    assert line not in found.text
    assert found.config.get("communication_data_type") == kind


@pytest.mark.parametrize("hook", ["power.powerSGD_hook", "lambda state, bucket: bucket", "getattr(hooks, args.name)"])
def test_a_hook_that_deepspeed_has_not_is_refused(hook: str) -> None:
    line = f"model.register_comm_hook(None, {hook})"
    refused(script(imports=HOOKS, model=f"{MODEL}{line}\n"), "MG903", line, "communication hook")


def test_an_option_for_such_a_hook_raises_and_the_others_go_on() -> None:
    line = "model.register_comm_hook(None, power.powerSGD_hook if args.amp else hooks.fp16_compress_hook)"
    found = converted(script(imports=HOOKS, model=f"{MODEL}{line}\n"))
    assert "if args.amp:\n    raise NotImplementedError(" in found.text
    assert [code for code, _ in found.todos] == ["MG310"]


# -- the process group is gone -----------------------------------------------------------------------------------------

SAVE = 'if dist.get_rank() == 0:\n    torch.save({"o": optimizer.state_dict()}, "last.pt")\n'
GONE = "dist.destroy_process_group()\n"


@pytest.mark.parametrize(
    ("end", "marked"),
    [
        (GONE + SAVE.replace("dist.get_rank()", "rank"), True),
        (f"if args.amp:\n    {GONE}" + SAVE, True),
        (SAVE + GONE, False),
        (f"if args.amp:\n    {GONE}    raise SystemExit\n{SAVE}", False),
    ],
)
def test_a_save_behind_the_end_of_the_group_is_marked(end: str, marked: bool) -> None:
    found = converted(script(model=f"rank = dist.get_rank()\n{MODEL}", end=end))
    assert ("MG633" in found.codes(Kind.TODO)) is marked
    assert ("gather_checkpoint(" in found.text) is not marked
