"""Optimizer classes of a script: a step that does more than arithmetic on every number by itself needs ZeRO stage 0."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

HELPERS = """
    def length(p):
        return p.norm()

    def scaled(d):
        return d / length(d)

    def clipped(g, limit=1.0):
        return torch.clamp(g, -limit, limit)

    def first(numbers):
        return numbers[0]

    """
CLASS = """
    class Mine(torch.optim.Optimizer):
        def __init__(self, params, lr, **kwargs):
            super().__init__(params, dict(lr=lr, momentum=0.9, weight_decay=0.0))
            {made}

        def scale(self, p):
            return clipped(p.grad)

        @torch.no_grad()
        def step(self, closure=None):
            loss = closure() if closure is not None else None
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if p.grad.is_sparse:
                        raise RuntimeError(f"{{p.shape}} is sparse")
                    d = p.grad
                    state = self.state[p]
                    if len(state) == 0:
                        state["mu"] = torch.zeros_like(p)
    {body}
                    p.add_(state["mu"], alpha=-group["lr"])
            return loss
    """


def _with(text: str, imports: str = "") -> Migrated:
    return convert(helpers=text, imports=imports, optimizer="optimizer = Mine(model.parameters(), lr=args.lr)")


def _stepping(body: str, made: str = "pass", imports: str = "") -> Migrated:
    lines = indent(dedent(body).strip("\n"), " " * 16)
    return _with(dedent(HELPERS) + dedent(CLASS).format(body=lines, made=made), imports)


@pytest.mark.parametrize(
    "body",
    [
        "d = scaled(d)",
        "d = d / torch.linalg.vector_norm(d)",
        "d = d / d.std()",
        "d = d / d.abs().amax()",
        "d = d / d.abs().max()",
        "d = d / torch.max(d)",
        "d = F.normalize(d, dim=0)",
        "d = d * F.cosine_similarity(d, p, dim=0)",
        "d = d * (d.abs() >= d.abs().topk(2)[0])",
        "d = d / len(p)",
        "d = d @ d",
        "d[0] = 0",
        "d = d * first(d)",
        "d = d * torch.randn_like(d)",
        'if torch.isnan(d).any():\n    continue\nstate["mu"].add_(d)',
        'if getattr(p, "slow", False):\n    d = d * 0.1',
        'if hasattr(p, "no_decay"):\n    d = d * 0.1',
        "d = d * p.scale",
        'if p is group["params"][0]:\n    d = d * 0.1',
        "if p in self.slow:\n    d = d * 0.1",
        "d = d * self.scales[p]",
        "d = d * self.scales[id(p)]",
        'd = d / len(group["params"])',
        "torch.nn.utils.clip_grad_norm_(p, 1.0)",
        "dist.all_reduce(d)",
    ],
)
def test_a_step_that_looks_at_whole_parameters_gets_stage_zero(body: str) -> None:
    migrated = _stepping(body + '\nstate["mu"].add_(d)')
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert "Mine works layer by layer" in migrated.said("MG602", "optimizer = Mine", Kind.KEPT).message


@pytest.mark.parametrize(
    "loop", ['for n, p in enumerate(group["params"])', 'for p, s in zip(group["params"], self.scales)']
)
def test_the_position_of_a_parameter_is_not_that_of_a_piece(loop: str) -> None:
    text = dedent(f"""
        class Mine(torch.optim.Optimizer):
            def step(self):
                for group in self.param_groups:
                    {loop}:
                        p.data.add_(p.grad, alpha=-group["lr"] * {"(n + 1)" if "n, p" in loop else "s"})
        """)
    migrated = _with(text)
    assert migrated.config["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize("made", ["self.kept = list(params)", 'self.state["x"] = 0'])
def test_parameters_that_are_kept_when_the_optimizer_is_made_are_whole_ones(made: str) -> None:
    migrated = _stepping('state["mu"].add_(d)', made)
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_what_is_not_known_is_said_to_be_so() -> None:
    migrated = _stepping('state["mu"].add_(rule(d))', imports="from rules import rule")
    assert migrated.config["zero_optimization"] == {"stage": 0}
    said = migrated.said("MG602", "optimizer = Mine", Kind.KEPT).message
    assert "Mine may work layer by layer: what rule does is not known" in said


@pytest.mark.parametrize(
    "body",
    [
        'state["mu"].mul_(group["momentum"]).add_(d)',
        'd = d.add(p, alpha=group["weight_decay"])\nstate["mu"].lerp_(d, 1 - group["momentum"])',
        'd = clipped(d)\nstate["mu"].add_(d)',
        'state["mu"].add_(self.scale(p))',
        'state["mu"] = torch.where(d > 0, d, torch.zeros(p.shape, device=p.device))',
        'state["mu"].copy_(torch.max(state["mu"], d.abs()))',
        'if "nu" not in state:\n    state["nu"] = torch.zeros(p.size())\nstate["mu"].addcdiv_(d, state["nu"].sqrt())',
        'state["mu"].add_(d.float().sign_().mul_(math.sqrt(1 - group["momentum"] ** 2)))',
    ],
)
def test_arithmetic_on_every_number_keeps_the_stage(body: str) -> None:
    migrated = _stepping(body, imports="import math")
    assert migrated.config["zero_optimization"] == {"stage": 2}
    migrated.silent("MG602", "MG603")


ADAMW = """
    class Mine(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False):
            if not 0.0 <= betas[0] < 1.0:
                raise ValueError(f"Invalid beta: {betas[0]}")
            defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad)
            super(Mine, self).__init__(params, defaults)

        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("amsgrad", False)

        def step(self, closure=None):
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                beta1, beta2 = group["betas"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    grad = p.grad.data
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"] = 0
                        state["exp_avg"] = torch.zeros_like(p.data, memory_format=torch.preserve_format)
                        state["exp_avg_sq"] = torch.zeros_like(p.data)
                        if group["amsgrad"]:
                            state["max_exp_avg_sq"] = torch.zeros_like(p.data)
                    exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                    state["step"] += 1
                    exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
                    grad_residual = grad - exp_avg
                    exp_avg_sq.mul_(beta2).addcmul_(grad_residual, grad_residual, value=1 - beta2)
                    if group["amsgrad"]:
                        torch.max(state["max_exp_avg_sq"], exp_avg_sq, out=state["max_exp_avg_sq"])
                        exp_avg_sq = state["max_exp_avg_sq"]
                    correction = 1 - beta2 ** state["step"]
                    denom = (exp_avg_sq.sqrt() / math.sqrt(correction)).add_(group["eps"])
                    step_size = group["lr"] / (1 - beta1 ** state["step"])
                    p.data.mul_(1 - group["lr"] * group["weight_decay"])
                    p.data.addcdiv_(exp_avg, denom, value=-step_size)
            return loss
    """
LISTED = """
    def sgd(params, d_p_list, buffers, *, lr, momentum):
        for i, param in enumerate(params):
            d_p = d_p_list[i]
            buf = buffers[i]
            if buf is None:
                buf = torch.clone(d_p).detach()
                buffers[i] = buf
            else:
                buf.mul_(momentum).add_(d_p)
            param.add_(buf, alpha=-lr)

    class Mine(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                params, grads, buffers = [], [], []
                for p in group["params"]:
                    if p.grad is not None:
                        params.append(p)
                        grads.append(p.grad)
                        state = self.state[p]
                        buffers.append(state.get("momentum_buffer"))
                if len(params) == 0:
                    continue
                sgd(params, grads, buffers, lr=group["lr"], momentum=group["momentum"])
                for p, buffer in zip(params, buffers):
                    self.state[p]["momentum_buffer"] = buffer
    """
FOREACH = """
    class Mine(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                grads = [p.grad for p in params]
                torch._foreach_mul_(grads, group["lr"])
                torch._foreach_sub_(params, grads)
    """
LION = """
    def exists(value):
        return value is not None

    def update_fn(p, grad, exp_avg, lr, wd, beta1, beta2):
        p.data.mul_(1 - lr * wd)
        update = exp_avg.clone().mul_(beta1).add(grad, alpha=1 - beta1).sign_()
        p.add_(update, alpha=-lr)
        exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)

    class Lion(torch.optim.Optimizer):
        def __init__(self, params, lr, use_triton=False):
            super().__init__(params, dict(lr=lr, betas=(0.9, 0.99)))
            self.update_fn = update_fn
            if use_triton:
                from kernels import update_fn as triton_update_fn
                self.update_fn = triton_update_fn

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in filter(lambda p: exists(p.grad), group["params"]):
                    grad, lr, wd, beta1, beta2, state = p.grad, group["lr"], 0.1, *group["betas"], self.state[p]
                    if len(state) == 0:
                        state["exp_avg"] = torch.zeros_like(p)
                    self.update_fn(p, grad, state["exp_avg"], lr, wd, beta1, beta2)

    Mine = Lion
    """
SUBCLASS = """
    class Warm(torch.optim.SGD):
        pass

    class Mine(Warm):
        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.mul_(1.0 - group["lr"])
            return super().step(closure)
    """


@pytest.mark.parametrize("text", [ADAMW, LISTED, FOREACH, LION, SUBCLASS])
def test_update_rules_as_they_are_written_keep_the_stage(text: str) -> None:
    migrated = _with(text, imports="import math")
    assert migrated.config["zero_optimization"] == {"stage": 2}
    migrated.silent("MG602", "MG603")
