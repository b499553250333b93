"""DS625: the clipping of gradients among the parameters of the optimizer."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import is_number, params_path, written_type


@rule(
    "DS625",
    "max-grad-norm-parameter",
    summary="`max_grad_norm` among the parameters of the optimizer, where the engine refuses it.",
    why="The engine raises a `ValueError` whenever the key is there, for every type, also with 0. Clipping is the "
    "top-level `gradient_clipping`, for fp16 as well. Deleting the key does not turn clipping off: the default of "
    "`gradient_clipping` is 1.0 since 0.19.3. With an optimizer object from the script the section is not used and "
    "nothing happens.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",
        "https://github.com/deepspeedai/DeepSpeed/issues/102",
    ),
    keys=("optimizer.params.max_grad_norm", "gradient_clipping"),
    pains=(21,),
    examples=(
        Example(
            """{
  "train_batch_size": 8,
  "optimizer": {
    "type": "SGD",
    "params": {
      "lr": 0.1,
      «"max_grad_norm": 0.5»
    }
  }
}
""",
            fixed="""{
  "train_batch_size": 8,
  "optimizer": {
    "type": "SGD",
    "params": {
      "lr": 0.1
    }
  },
  "gradient_clipping": 0.5
}
""",
        ),
        Example(
            '{"train_batch_size": 8, "gradient_clipping": 1.0, '
            '"optimizer": {"type": "SGD", "params": {"lr": 0.1, «"max_grad_norm": 0.5»}}}',
            fixed='{"train_batch_size": 8, "gradient_clipping": 1.0, "optimizer": {"type": "SGD", "params": '
            '{"lr": 0.1}}}',
        ),
        Example(
            '{"train_batch_size": 8, "gradient_clipping": 0.5, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the key, whatever its value."""
    entry = context.entry("optimizer.params.max_grad_norm")
    if entry is None or entry.node is None or written_type(context, "optimizer") is None:
        return
    value = entry.node.value()
    same = context.raw("gradient_clipping") == value
    movable = is_number(value) or value == "auto"
    yield context.finding(
        params_path("optimizer", "max_grad_norm"),
        say(
            "the engine refuses `max_grad_norm` in the parameters of an optimizer; clipping is the top-level "
            "`gradient_clipping`"
        ),
        part="member",
        fixes=[
            context.move(entry, ("gradient_clipping",), say("Move it to `gradient_clipping`"), safe=True)
            if movable
            else None,
            context.remove(entry, say("Remove `max_grad_norm`"), safe=same),
        ],
    )
