"""What DDP did beside averaging gradients: moving inputs, sending buffers, leaving unused parameters alone."""

from __future__ import annotations

from textwrap import dedent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

ON_DEVICE = "model = DDP(Net().cuda(), device_ids=[local_rank])"


def train(*lines: str) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"def train(model, loader, optimizer):\n    for x, y in loader:\n{body}        optimizer.zero_grad()\n"
        "        loss.backward()\n        optimizer.step()\n"
    )


CALL = "train(model, train_loader, optimizer)"


def test_inputs_that_the_script_moves_are_no_matter() -> None:
    migrated = convert(
        helpers=train("x, y = x.cuda(), y.cuda()", "loss = F.cross_entropy(model(x), y)"), loop=CALL, wrap=ON_DEVICE
    )
    migrated.silent("MG108")


def test_inputs_are_no_matter_without_device_ids() -> None:
    migrated = convert(
        helpers=train("loss = F.cross_entropy(model(x), y)"), loop=CALL, wrap="model = DDP(Net().cuda())"
    )
    migrated.silent("MG108")


def test_inputs_that_only_ddp_moved_are_named() -> None:
    migrated = convert(helpers=train("loss = F.cross_entropy(model(x), y)"), loop=CALL, wrap=ON_DEVICE)
    assert any(change.code == "MG108" for change in migrated.changes)


def test_inputs_that_only_ddp_moved_are_named_beside_a_target_that_is_moved() -> None:
    migrated = convert(helpers=train("y = y.cuda()", "loss = F.cross_entropy(model(x), y)"), loop=CALL, wrap=ON_DEVICE)
    assert any(change.code == "MG108" for change in migrated.changes)


def test_inputs_made_on_the_spot_are_moved() -> None:
    migrated = convert(
        loop="""
            for step in range(10):
                loss = model(torch.randn(20, 32)).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
        wrap=ON_DEVICE,
    )
    assert "loss = model(torch.randn(20, 32).to(model.device)).sum()\n" in migrated.section("loop")
    migrated.said("MG108", "torch.randn(20, 32)", Kind.CONVERTED)


def test_buffers_are_sent_once_where_there_may_be_some() -> None:
    migrated = convert(wrap="model = DDP(nn.Sequential(nn.BatchNorm1d(32), Net()).cuda())")
    assert migrated.section("optimizer").endswith(
        "for buffer in model.module.buffers():\n    torch.distributed.broadcast(buffer.data, src=0)\n"
    )
    migrated.said("MG109", "model = DDP(", Kind.CONVERTED)


@pytest.mark.parametrize(
    ("imports", "value"), [("", "torch.ones(2, 3).t()"), ("", "w.permute(1, 0)"), ("import torchaudio", "mel")]
)
def test_a_buffer_that_may_not_be_contiguous_is_sent_as_a_copy(imports: str, value: str) -> None:
    net = f"net = nn.Sequential(nn.BatchNorm1d(32), Net())\nnet.register_buffer('basis', {value})"
    wrap = f"{net}\nmodel = DDP(net.cuda())"
    assert (
        convert(imports=imports, wrap=wrap)
        .section("optimizer")
        .endswith(
            "for buffer in model.module.buffers():\n    buffer_data = buffer.data.contiguous()\n"
            "    torch.distributed.broadcast(buffer_data, src=0)\n    buffer.data.copy_(buffer_data)\n"
        )
    )


def test_buffers_that_ddp_did_not_send_stay_those_of_each_rank() -> None:
    """DDP with ``broadcast_buffers=False`` leaves buffers that were filled at random as they are, on every rank."""
    wrap = "model = DDP(nn.Sequential(nn.BatchNorm1d(32), Net()).cuda(), broadcast_buffers=False)"
    migrated = convert(wrap=wrap)
    assert "buffer" not in migrated.section("optimizer")
    migrated.said("MG109", "model = DDP(", Kind.KEPT)
    layers = "model = nn.Sequential(nn.BatchNorm1d(32), Net()).cuda()"
    copied = convert(
        imports="import copy",
        wrap=f"{layers}\nmodel = DDP(model, None, None, 0, False)\nteacher = copy.deepcopy(model)",
    )
    assert "for tensor in model.parameters():" in copied.code
    assert "state_dict()" not in copied.code


FOREIGN = """
    class Probe(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = {made}
            self.head = nn.Linear(64, 10)

        def forward(self, x):
            return self.head(self.encoder(x))
    """


@pytest.mark.parametrize(
    "made",
    [
        "encoders.Encoder()",
        "encoders.__dict__[args.name]()",
        "nn.Sequential(nn.Linear(32, 64), encoders.Encoder().cuda())",
        'torch.hub.load("owner/name", "encoder")',
    ],
)
def test_a_part_from_elsewhere_may_have_buffers(made: str) -> None:
    migrated = convert(imports="import encoders", helpers=FOREIGN.format(made=made), wrap="model = DDP(Probe().cuda())")
    migrated.said("MG109", "model = DDP(", Kind.CONVERTED)


@pytest.mark.parametrize(
    "made",
    [
        "self.parts = nn.ModuleList()\n        self.parts.append(encoders.Encoder())",
        'self.add_module("part", encoders.Encoder())',
        "self.part, self.width = encoders.make()",
        "self.part: nn.Module = encoders.Encoder()",
        "layers = []\n        layers.append(encoders.Encoder())\n        self.part = nn.Sequential(*layers)",
        'setattr(self, "part", encoders.Encoder())',
    ],
)
def test_a_part_from_elsewhere_is_found_however_it_is_put_in(made: str) -> None:
    helpers = FOREIGN.replace("self.encoder = {made}", made.replace("\n", "\n    "))
    migrated = convert(imports="import encoders", helpers=helpers, wrap="model = DDP(Probe().cuda())")
    migrated.said("MG109", "model = DDP(", Kind.CONVERTED)


@pytest.mark.parametrize("base", ["encoders.Encoder", "Own"])
def test_a_model_whose_forward_is_that_of_its_base_may_have_buffers(base: str) -> None:
    helpers = f"""
        class Own(nn.Module):
            def forward(self, x):
                return self.part(x)


        class Probe({base}):
            def __init__(self):
                super().__init__()
                self.part = encoders.make()
        """
    migrated = convert(imports="import encoders", helpers=helpers, wrap="model = DDP(Probe().cuda())")
    migrated.said("MG109", "model = DDP(", Kind.CONVERTED)


def test_layers_around_a_model_from_elsewhere_hide_no_buffers() -> None:
    migrated = convert(
        imports="import encoders",
        wrap="encoder = encoders.make()\nmodel = DDP(nn.Sequential(encoder, nn.Linear(64, 10)).cuda())",
    )
    migrated.said("MG109", "model = DDP(", Kind.CONVERTED)


@pytest.mark.parametrize("made", ["nn.Linear(32, int(64 * math.sqrt(1)))", "make_layers(2)", "Net()"])
def test_layers_that_are_seen_to_have_none_send_none(made: str) -> None:
    helpers = """
        def make_layers(count):
            return nn.Sequential(*[nn.Linear(32, 64) for _ in range(count)])


        """
    migrated = convert(
        imports="import math",
        helpers=dedent(helpers) + dedent(FOREIGN.format(made=made)),
        wrap="model = DDP(Probe().cuda())",
    )
    migrated.silent("MG109")


def test_a_model_without_buffers_sends_none() -> None:
    migrated = convert()
    assert "buffers()" not in migrated.code
    migrated.silent("MG109")


@pytest.mark.parametrize(("value", "said"), [("True", True), ("args.amp", True), ("False", False)])
def test_unused_parameters_are_spoken_of(value: str, said: bool) -> None:
    migrated = convert(wrap=f"model = DDP(Net().cuda(), find_unused_parameters={value})")
    assert any(change.code == "MG110" for change in migrated.changes) is said


@pytest.mark.parametrize(
    ("before", "given", "said"),
    [
        ("", "**args.ddp", True),
        ("extra = {}\nif args.amp:\n    extra['find_unused_parameters'] = True\n", "**extra", True),
        ("extra = {'static_graph': args.amp}\n", "**extra", True),
        ("extra = {'bucket_cap_mb': 50}\n", "**extra", False),
        ("", "static_graph=True", True),
    ],
)
def test_unused_parameters_that_keywords_from_elsewhere_may_allow_are_spoken_of(
    before: str, given: str, said: bool
) -> None:
    migrated = convert(wrap=f"{before}model = DDP(Net().cuda(), device_ids=[local_rank], {given})")
    assert any(change.code == "MG110" for change in migrated.changes) is said
