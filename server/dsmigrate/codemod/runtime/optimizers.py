"""Steps of optimizers that the script did not ask for, and optimizers that are not the script's."""

from __future__ import annotations

from typing import Any


def use_own_adagrad(engine: Any) -> None:
    """Let ZeRO step the script's own ``torch.optim.Adagrad``. After deepspeed.initialize; not collective.

    ZeRO 1 to 3 make another one, of its defaults, which none of the script's groups and schedules reaches: it stands in
    ``optimizer`` of the engine's optimizer. Does nothing for other optimizers, and at ZeRO 0.
    """
    zero, own = engine.optimizer, engine.basic_optimizer
    if zero is not own and zero.optimizer is not own:
        own.state.update(zero.optimizer.state)
        zero.optimizer = own


def forget_first_step(engine: Any) -> None:
    """Undo the step, with gradients of zero, that DeepSpeed takes when it makes its optimizer. Not collective.

    Right after deepspeed.initialize, before ``keep_torch_checkpoints``: in all releases for weights in half precision
    without ZeRO, up to 0.13.1 at ZeRO 1 to 3 too. Adam counts that step, and weight decay acts in it.
    """
    zero, own = engine.optimizer, engine.basic_optimizer
    if engine.global_steps or hasattr(engine, "torch_checkpoints"):
        raise RuntimeError("forget_first_step comes right after deepspeed.initialize")
    if zero is own or zero.optimizer is not own:  # Adagrad is made anew, and takes no step
        return
    zero.refresh_fp32_params()
    loaded = {parameter: own.state[parameter] for parameter in engine.module.parameters() if parameter in own.state}
    own.state.clear()
    own.state.update(loaded)
