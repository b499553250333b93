"""Every code of the catalogue has an example, and the example does what the catalogue says."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.codemod.model import Idea, Kind, Options, Status
from dsmigrate.launchers.ideas import IDEAS as LAUNCHERS
from dsmigrate.migration.catalogue import every_idea
from tests.codemod.checks import migrate_example
from tests.support.migrating import migrate_source

EXAMPLES = Path(__file__).parents[2] / "server" / "dsmigrate" / "codemod" / "examples"
WITHOUT = {
    "MG999": "what is found by reading the result back is a fault of dsmigrate itself; no script triggers it",
    "MG998": "an internal error, which only tests/migration plants",
    "MG120": "several scripts and their modules, which tests/migration has",
    "MG914": "several scripts and their modules, which tests/migration has",
    "MG609": "an optimizer's wrapper whose step is not read, which idioms' tests have",
    "MG913": "a loop that no name of the model reaches takes more than a few lines",
}
# The lines that the change with the example's own code has to cover, by their text.
LINES: dict[str, tuple[str, ...]] = {
    "MG101": ("    model = DDP(model)",),
    "MG102": ("        model = nn.DataParallel(model)",),
    "MG103": ("    model._set_static_graph()",),
    "MG104": ("    model = DistributedDataParallel(model)",),
    "MG105": ("    teacher = DDP(Net().cuda(), device_ids=[local_rank])",),
    "MG106": ("    model = DDP(Net().cuda(), mixed_precision=half)",),
    "MG108": ("        loss = model(x, y).mean()",),
    "MG109": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
    "MG110": ("    model = DDP(Net().cuda(), device_ids=[local_rank], find_unused_parameters=True)",),
    "MG111": (
        "def optimize(loss, optimizer):",
        "        optimize(F.cross_entropy(model(x.cuda()), y.cuda()), optimizer)",
    ),
    "MG112": ("    loss_scaler = NativeScaler()",),
    "MG113": ("        model = FSDP(model)",),
    "MG114": ("    model = DDP(model, device_ids=[local_rank])",),
    "MG116": ("    model = DDP(Net().cuda(), gradient_average=False)",),
    "MG119": ("    average = copy.deepcopy(model.module)",),
    "MG121": ("        return F.cross_entropy(self(x), y)",),
    "MG128": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
    "MG129": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
    "MG201": ("        timeout=datetime.timedelta(minutes=60),",),
    "MG203": ('    os.environ["MASTER_ADDR"] = "localhost"', '    os.environ["MASTER_PORT"] = "12355"'),
    "MG204": ('    parser.add_argument("--local_rank", type=int, default=-1, help="set by the launcher")',),
    "MG205": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
    "MG206": ('    dist.init_process_group("nccl", rank=rank, world_size=world_size)',),
    "MG208": ("    launch(train, 2)",),
    "MG209": ("from torch.nn.parallel import DistributedDataParallel as DDP",),
    "MG213": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
    "MG216": ("        model = DDP(model, device_ids=[local_rank])",),
    "MG225": ('    os.environ["CUDA_VISIBLE_DEVICES"] = "2,3"',),
    "MG229": ('    dist.init_process_group("nccl", init_method=',),
    "MG230": ("    workers = [mp.Process(target=worker, args=(rank, world_size, 10))",),
    "MG301": ('        with torch.autocast("cuda", dtype=torch.bfloat16):',),
    "MG302": ('    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**14, growth_interval=500)',),
    "MG303": ("        scaler.update()",),
    "MG304": (
        '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")',
        "        with amp.scale_loss(loss, optimizer) as scaled_loss:",
    ),
    "MG306": ("    losses = [F.cross_entropy(model(x.cuda()), y.cuda()) for x, y in loader]",),
    "MG307": ('        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=step >= 500):',),
    "MG308": ('        with torch.autocast("cuda", dtype=torch.bfloat16):',),
    "MG309": (
        "        model.register_comm_hook(None, default_hooks.fp16_compress_hook)",
        "        model.register_comm_hook(None, default_hooks.bf16_compress_hook)",
    ),
    "MG310": ("        model.register_comm_hook(state, powerSGD.powerSGD_hook)",),
    "MG311": ("    model = DDP(Net().to(local_rank, dtype=torch.bfloat16), device_ids=[local_rank])",),
    "MG401": ("        loss.backward()",),
    "MG402": ("        optimizer.step()",),
    "MG403": ("        for param in model.parameters():", "            param.grad = None"),
    "MG404": ("            optimizer.step()",),
    "MG405": ("        with contextlib.nullcontext() if boundary else model.no_sync():",),
    "MG406": ("        loss.backward()",),
    "MG407": ("        loss.backward()",),
    "MG408": ("        optimizer.zero_grad()  # drops the unfinished window of the last epoch",),
    "MG409": ("            param.grad.add_(param.detach().sign(), alpha=1e-4)  # L1 penalty",),
    "MG410": ("        biggest = max(p.grad.abs().max().item() for p in model.parameters())",),
    "MG411": ("        loss.backward(create_graph=second_order)",),
    "MG413": ("            step = torch.autograd.grad(F.cross_entropy(model(x + noise), y), noise)[0]",),
    "MG421": ("        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)",),
    "MG422": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
    "MG423": ("        nn.utils.clip_grad_value_(model.parameters(), 0.1)",),
    "MG424": ("        nn.utils.clip_grad_norm_(model.parameters(), 0.1 if step < 500 else 1.0)",),
    "MG425": ("        scaler.unscale_(optimizer)",),
    "MG426": ("        scaler.unscale_(optimizer)",),
    "MG427": ("        nn.utils.clip_grad_norm_(model.parameters(), 1.0)",),
    "MG428": ("        if not torch.isnan(loss):",),
    "MG501": ("    head = model.module.layers[2]",),
    "MG502": ("    return model.module if isinstance(model, DDP) else model",),
    "MG503": ("    raw_model = model.module if ddp else model",),
    "MG504": ("    return sum(p.numel() for p in model.module.layers.parameters())",),
    "MG505": ('    print(sum(losses) / len(losses), "training" if model.training else "evaluating")',),
    "MG506": ("    best = copy.deepcopy(model)",),
    "MG508": ('    model.load_state_dict(torch.load("pretrained.pt"), strict=False)',),
    "MG509": ("            model.module.prototypes.weight.copy_(weight)",),
    "MG512": ("    model.lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)",),
    "MG517": ('    print("trained on", model.device_ids)',),
    "MG518": ("        self.scale = nn.Parameter(torch.ones([]) * 2.7)",),
    "MG519": ("            self.scale = nn.Parameter(torch.ones(64, device=hidden.device))",),
    "MG520": ("optimizer.register_step_post_hook(follow)",),
    "MG523": ("    model = DDP(model, device_ids=[local_rank])",),
    "MG601": ("    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)",),
    "MG602": ("    optimizer = Lamb(model.parameters(), lr=4e-3, weight_decay=0.02)",),
    "MG603": ("    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=3e-4)",),
    "MG604": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
    "MG605": ('            optimizer.add_param_group({"params": model.module.layers[0].parameters(), "lr": 1e-5})',),
    "MG606": ("    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, betas=(0.9, 0.95))",),
    "MG607": ("        model.module.layers[0].requires_grad_(epoch >= 2)",),
    "MG608": ("    optimizer = torch.optim.AdamW([*model.parameters(), *criterion.parameters()], lr=3e-4)",),
    "MG610": (
        "    optimizer = ZeroRedundancyOptimizer(",
        "        optimizer_class=torch.optim.AdamW,",
        "        optimizer.consolidate_state_dict(to=0)",
    ),
    "MG613": ('                group["lr"] *= 0.5 if worse else 1.0',),
    "MG614": ("    optimizer = torch.optim.AdamW([",),
    "MG621": ('            torch.save(state, f"checkpoints/epoch_{epoch}.pt")',),
    "MG622": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
    "MG626": ("        watch(model, optimizer, loss)",),
    "MG627": ('    print(optimizer.state_dict()["param_groups"][0]["lr"])',),
    "MG630": ('        size = sum(p.norm() for group in optimizer.param_groups for p in group["params"])',),
    "MG631": ('torch.save({"model": model.module, "optimizer": optimizer}',),
    "MG633": (
        '            torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")',
    ),
    "MG635": ('torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, "best.pt")',),
    "MG636": ('torch.load("last.pt", map_location="cpu")', 'torch.save(state, "last.pt")'),
    "MG637": ('            upload("last.pt")',),
    "MG638": ('            torch.save(optimizer.state_dict(), "optimizer.pt")',),
    "MG701": ("    for x, y in train_loader:",),
    "MG702": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
    "MG703": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
    "MG704": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
    "MG705": ("            for mean, parameter in zip(average.parameters(), model.parameters()):",),
    "MG706": ("    optimizer = torch.optim.AdamW([",),
    "MG707": ("    for averaged, current in zip(ema.parameters(), model.parameters()):",),
    "MG708": ('    model = torch.compile(model, mode="max-autotune")',),
    "MG709": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
    "MG710": ("        with torch.inference_mode():",),
    "MG711": ("    losses = [F.cross_entropy(model(x.cuda()), y.cuda()).item() for x, y in loader]",),
    "MG712": ("    for lr in args.rates:",),
    "MG900": ('        print "epoch %d: loss %.4f" % (epoch, loss.data[0])',),
    "MG901": ("    generator, critic = DDP(Net().cuda()), DDP(Net().cuda())",),
    "MG902": ("        second.step()",),
    "MG903": ("    model.register_comm_hook(powerSGD.PowerSGDState(None), powerSGD.powerSGD_hook)",),
    "MG904": ('        model, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config="ds_config.json")',),
    "MG905": ("        F.cross_entropy(logits, y.cuda()).backward(retain_graph=True)",),
    "MG906": ("        optimizer.step(closure)",),
    "MG907": ("    accelerator = Accelerator()",),
    "MG910": ("    model = DDP(Net().cuda())",),
    "MG911": ("    model = DDP(Net().cuda())",),
    "MG912": ("        loss.backward()",),
    "MG915": ("    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)",),
}
_LAUNCHERS = {idea.code for idea in LAUNCHERS}
IDEAS = [idea for idea in every_idea() if idea.code not in WITHOUT and idea.code not in _LAUNCHERS]
CONVERTED = [idea for idea in IDEAS if idea.after]
UNCHANGED = ("MG209",)
REFUSED = [idea for idea in IDEAS if not idea.after and idea.code not in {"MG900", *UNCHANGED}]


def by_code(found: list[Idea]) -> pytest.MarkDecorator:
    """One case per idea."""
    return pytest.mark.parametrize("idea", found, ids=[idea.code for idea in found])


@by_code(IDEAS)
def test_each_code_has_an_example_of_readable_size(idea: Idea) -> None:
    assert idea.before
    lines = idea.before.splitlines()
    assert 15 <= len(lines) <= 55
    assert max(map(len, lines[1:])) <= 120
    assert idea.before.endswith("\n")
    assert idea.code in LINES


def test_each_example_belongs_to_a_code() -> None:
    known = {idea.code for idea in IDEAS}
    assert {path.name.partition(".")[0] for path in EXAMPLES.iterdir()} == known
    assert set(LINES) == known


def test_only_refusals_and_what_starts_nothing_have_no_after_side() -> None:
    refused = {idea.code for idea in IDEAS if idea.kind is Kind.REFUSED}
    assert {idea.code for idea in IDEAS if not idea.after} == {*refused, *UNCHANGED}


@by_code(CONVERTED)
def test_the_output_is_the_after_side(idea: Idea) -> None:
    migrated = migrate_example(idea.before)
    assert migrated.code == idea.after, f"python -m tests.codemod.update_examples {idea.code}"
    assert max(map(len, migrated.code.splitlines()[1:])) <= 140


@by_code(CONVERTED)
def test_the_example_gives_its_code_on_its_lines(idea: Idea) -> None:
    migrated = migrate_example(idea.before)
    kinds = {change.kind for change in migrated.changes if change.code == idea.code}
    assert idea.kind in kinds, migrated.told()
    for line in LINES[idea.code]:
        migrated.said(idea.code, line)


@by_code(CONVERTED)
def test_the_example_shows_little_else(idea: Idea) -> None:
    """An example of one idea needs no person for another one."""
    migrated = migrate_example(idea.before)
    todos = {change.code for change in migrated.changes if change.kind is Kind.TODO}
    assert todos <= {idea.code}, migrated.told()


@by_code(REFUSED)
def test_a_refused_example_is_refused_on_its_line(idea: Idea) -> None:
    migrated = migrate_example(idea.before)
    assert migrated.result.status is Status.REFUSED, migrated.told()
    assert [change.code for change in migrated.changes] == [idea.code]
    (line,) = LINES[idea.code]
    change = migrated.said(idea.code, line, Kind.REFUSED)
    assert change.message
    assert change.reason


def test_a_python_2_script_is_an_error_on_its_line() -> None:
    (idea,) = (idea for idea in IDEAS if idea.code == "MG900")
    result = migrate_source(idea.before.encode(), path="train.py", options=Options())
    assert result.status is Status.ERROR
    (change,) = result.changes
    (line,) = LINES["MG900"]
    assert idea.before.splitlines()[change.line - 1] == line
    assert change.code == "MG900"
    assert "Python 2" in change.message
