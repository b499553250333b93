"""Objects of the script that hold an optimizer and step it: NoamOpt, ScheduledOptim and others of that kind."""

from __future__ import annotations

from textwrap import indent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert, migrate, script

_NOAM = """
class Noam:
    def __init__(self, size, warmup, optimizer):
        self.optimizer = optimizer
        self.size, self.warmup, self.count = size, warmup, 0

    def {step}:
        self.count += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.size ** -0.5 * min(self.count ** -0.5, self.count * self.warmup ** -1.5)
        {inner}

    def zero_grad(self):
        self.optimizer.zero_grad()
"""
_MADE = "opt = Noam(32, 400, torch.optim.Adam(model.parameters(), lr=0))"


def noam(step: str = "step(self)", inner: str = "self.optimizer.step()", more: str = "") -> str:
    return _NOAM.format(step=step, inner=inner) + indent(more, "    ")


def loop(step: str, before: str = "") -> str:
    lines = ["loss = F.cross_entropy(model(x.cuda()), y.cuda())", "loss.backward()", *before.splitlines(), step]
    return "for x, y in train_loader:\n    opt.zero_grad()\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize("name", ["step", "step_and_update_lr"])
def test_the_engine_steps_inside_of_the_object(name: str) -> None:
    migrated = convert(helpers=noam(f"{name}(self)"), optimizer=_MADE, loop=loop(f"opt.{name}()"))
    assert f"    def {name}(self, *, engine):" in migrated.code
    assert '            group["lr"] = self.size' in migrated.code
    assert "        engine.step()\n" in migrated.code
    assert "model=model, optimizer=opt.optimizer, config=ds_config" in migrated.code.replace("\n    ", "")
    assert f"    model.backward(loss)\n    opt.{name}(engine=model)\n" in migrated.section("loop")
    migrated.silent("MG407", "MG902")


def test_an_object_that_a_function_gives_and_another_one_uses_is_followed() -> None:
    helpers = noam() + "\n\ndef make(model):\n    return Noam(32, 400, torch.optim.Adam(model.parameters(), lr=0))\n"
    helpers += "\n\ndef train(args, model, train_loader, opt):\n" + indent(loop("opt.step()"), "    ")
    migrated = convert(helpers=helpers, optimizer="opt = make(model)", loop="train(args, model, train_loader, opt)")
    assert "opt.step(engine=model)" in migrated.code
    assert "optimizer=opt.optimizer" in migrated.code


def test_the_engine_is_made_behind_what_fills_the_object() -> None:
    more = "def set_parameters(self, params):\n    self.optimizer = torch.optim.Adam(params, lr=0)\n"
    helpers = noam(more=more).replace("size, warmup, optimizer", "size, warmup").replace("= optimizer\n", "= None\n")
    made = "opt = Noam(32, 400)\nopt.set_parameters(model.parameters())"
    code = convert(helpers=helpers, optimizer=made, loop=loop("opt.step()")).code
    assert code.index("opt.set_parameters(model") < code.index("deepspeed.initialize(")


def test_a_step_that_is_passed_leaves_gradients_to_the_zero_grad_of_the_object() -> None:
    migrated = convert(helpers=noam(), optimizer=_MADE, loop=loop("opt.step()", "if loss > 9:\n    continue"))
    assert "    opt.zero_grad(engine=model)\n" in migrated.section("loop")
    assert "        drop_gradients(engine)\n" in migrated.code


def test_a_scheduler_of_torch_beside_it_steps_as_before() -> None:
    scheduler = "scheduler = torch.optim.lr_scheduler.StepLR(opt.optimizer, 2)"
    migrated = convert(
        helpers=noam(), optimizer=f"{_MADE}\n{scheduler}", loop=loop("opt.step()") + "scheduler.step()\n"
    )
    assert "scheduler.step()\n" in migrated.section("loop")


def test_a_scaler_inside_of_the_object_steps_the_engine() -> None:
    inner = "scaler.step(self.optimizer)\n        scaler.update()"
    text = loop("opt.step(scaler)").replace("loss.backward()", "scaler.scale(loss).backward()")
    made = f"{_MADE}\nscaler = torch.cuda.amp.GradScaler()"
    migrated = convert(helpers=noam("step(self, scaler)", inner), optimizer=made, loop=text)
    assert "        scaler.engine_step(engine)\n" in migrated.code
    assert "opt.step(scaler, engine=model)" in migrated.code


def refused(**parts: str) -> Migrated:
    migrated = migrate(script(**parts))
    assert migrated.result.new_source is None, migrated.told()
    return migrated


def test_a_scaler_that_steps_the_object_is_refused() -> None:
    text = loop("scaler.step(opt)\nscaler.update()".replace("\n", "\n    "))
    migrated = refused(helpers=noam(), optimizer=f"{_MADE}\nscaler = torch.cuda.amp.GradScaler()", loop=text)
    assert "runs the step of opt" in migrated.said("MG913", "scaler.step(opt)", Kind.REFUSED).message


def test_two_objects_with_an_optimizer_each_are_refused() -> None:
    other = "other = Noam(32, 400, torch.optim.SGD(model.body.parameters(), lr=0))"
    migrated = refused(helpers=noam(), optimizer=f"{_MADE}\n{other}", loop=loop("opt.step()\n    other.step()"))
    migrated.said("MG902", "other = Noam", Kind.REFUSED)


_STATE = """
def state_dict(self):
    return {"count": self.count, "optimizer": self.optimizer.state_dict()}

def load_state_dict(self, state):
    self.count = state["count"]
    self.optimizer.load_state_dict(state["optimizer"])
"""


def test_the_state_of_the_object_is_whole_at_stage_0() -> None:
    resume = 'opt.load_state_dict(torch.load(args.resume)["opt"])'
    end = 'if rank == 0:\n    torch.save({"model": model.module.state_dict(), "opt": opt.state_dict()}, args.output)'
    parts = {"helpers": noam(more=_STATE), "optimizer": _MADE, "resume": resume, "loop": loop("opt.step()"), "end": end}
    migrated = convert(**parts)
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert 'self.optimizer.load_state_dict(state["optimizer"])' in migrated.code
    migrated.said("MG627", '"optimizer": self.optimizer.state_dict()', Kind.KEPT)
    convert(to={"zero_stage": 2}, **parts).said("MG627", '"optimizer": self.optimizer.state_dict()', Kind.TODO)


GATED = """
for i, (x, y) in enumerate(train_loader):
    F.cross_entropy(model(x.cuda()), y.cuda()).backward()
    BEFORE
    if i % args.accum == 0:
        INSIDE
        opt.step()
        opt.zero_grad()
"""
_CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 0.3)"


def test_a_clip_beside_the_step_of_the_object_is_the_engines() -> None:
    text = GATED.replace("BEFORE", "pass").replace("INSIDE", _CLIP)
    migrated = convert(helpers=noam(), optimizer=_MADE, loop=text)
    assert migrated.config["gradient_clipping"] == 0.3
    migrated.silent("MG424")


def test_a_clip_of_partial_sums_in_front_of_the_objects_step_is_marked() -> None:
    text = GATED.replace("BEFORE", _CLIP).replace("INSIDE", "pass")
    migrated = convert(helpers=noam(), optimizer=_MADE, loop=text)
    marked = [c.message for c in migrated.changes if c.code == "MG424" and c.kind is Kind.TODO]
    assert any("not once per optimizer step" in message for message in marked)


def test_an_object_that_hands_zero_grad_on_clears_by_the_engine() -> None:
    handing = noam().replace("def zero_grad(self):", "def __getattr__(self, name):")
    handing = handing.replace("self.optimizer.zero_grad()", "return getattr(self.optimizer, name)")
    migrated = convert(helpers=handing, optimizer=_MADE, loop=loop("opt.step()"))
    migrated.said("MG408", "opt.zero_grad()", Kind.CONVERTED)
    migrated.silent("MG407")
