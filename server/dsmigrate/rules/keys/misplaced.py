"""DS102: a key of another section."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dsmigrate.document import Document, Path, TextEdit
from dsmigrate.document import edits as editing
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import TYPED, Context, Entry, shown
from dsmigrate.rules.keys._shared import Guess, Slip, guesses, is_comment, refuses, unknown
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.registry import rule

_PRECISIONS = frozenset({"fp16", "bf16"})


@rule(
    "DS102",
    "misplaced-key",
    summary="A key that DeepSpeed knows, in a section where it does not look for it.",
    why=(
        "`offload_optimizer` at the top level loads, and nothing is offloaded; `lr` beside `params` leaves the"
        " optimizer at its default. In a section that is a pydantic model the same slip is a `ValidationError`: `aio`"
        " in `zero_optimization`, `loss_scale` in `bf16`."
    ),
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=(
        "https://github.com/deepspeedai/DeepSpeed/issues/1935",
        "https://github.com/deepspeedai/DeepSpeed/issues/2721",
    ),
    keys=("zero_optimization.offload_optimizer", "aio", "fp16.loss_scale"),
    pains=(13, 14, 16),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, «"offload_optimizer"»: {"device": "none"}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, «"aio"»: {}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "aio": {}}',
        ),
        Example(
            '{"train_batch_size": 8, "bf16": {"enabled": true, «"loss_scale"»: 0}}',
            fixed='{"train_batch_size": 8, "bf16": {"enabled": true}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}, «"eps"»: 1e-6}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "eps": 1e-6}}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, «"zero_allow_untested_optimizer"»: true}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "zero_allow_untested_optimizer": true}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '"fp16": {"enabled": true, «"type"»: "bfloat16"}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "fp16": {"enabled": false}, '
            '"bf16": {"enabled": true}}',
        ),
        Example(
            '{"train_batch_size": 8, «"zero_stage"»: 2}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, «"bf16"»: {"enabled": true}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}',
        ),
        Example(
            '{"train_batch_size": 8, «"gradient_accumulation_dtype"»: "fp32"}',
            fixed='{"train_batch_size": 8, "data_types": {"grad_accum_dtype": "fp32"}}',
        ),
        Example('{"train_batch_size": 8, "fp16": {"enabled": false, "loss_scale": 0}}'),
        Example('{"train_batch_size": 8, "data": {"overwrite": true}}'),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {}, "bfloat16": {"enabled": true, "loss_scale": 0}}',
            consumer=Consumer.TRANSFORMERS,
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each key that belongs elsewhere."""
    for entry, section in unknown(context):
        found = [guess for guess in guesses(context, entry, section) if guess.slip is not Slip.SPELLING]
        first = guesses(context, entry, section)[:1]
        if is_comment(entry.name) or not first or first[0].slip not in {Slip.PLACE, Slip.BOTH, Slip.VALUE}:
            continue
        refused = refuses(context, section, entry)
        guess = found[0]
        does = say("rejects the config for it") if refused else say("silently ignores it")
        where = say("in {path}", path=shown(entry.path[:-1])) if section else say("at the top level")
        home = f"`{guess.path.rpartition('.')[0]}`" if "." in guess.path else say("the top level")
        named = say("`{name}` belongs", name=guess.name) if guess.slip is Slip.BOTH else say("it belongs")
        told = say(
            "`{name}` {where}: DeepSpeed {does}; {named} to {home}",
            name=entry.name,
            where=where,
            does=does,
            named=named,
            home=home,
        )
        if guess.slip is Slip.VALUE:
            told = say(
                "`{name}` {where}: DeepSpeed {does}; `{path}` is the switch",
                name=entry.name,
                where=where,
                does=does,
                path=guess.path,
            )
        yield context.finding(
            entry,
            told,
            part="key",
            severity=Severity.ERROR if refused else _severity(context, entry, section, guess),
            effect=Effect.REJECTED if refused else None,
            fixes=_fixes(context, entry, found, refused=refused),
        )


def _severity(context: Context, entry: Entry, section: str, guess: Guess) -> Severity | None:
    """Return INFO for a common word at the top level, which an application may well use for itself."""
    home = guess.path.rpartition(".")[0]
    common = not section and "_" not in entry.name and not (home and context.has(home.split(".")[0]))
    return Severity.INFO if common or guess.slip is Slip.BOTH else None


def _fixes(context: Context, entry: Entry, found: list[Guess], *, refused: bool) -> Iterator[Fix | None]:
    removal = context.remove(
        entry, say("Remove {path}", path=shown(entry.path)), safe=refused and entry.path[0] in _PRECISIONS
    )
    guess = found[0]
    if guess.slip is Slip.VALUE:
        yield _switch(context, entry, guess)
        yield removal
        return
    homes = {guess.path.split(".")[0], str(entry.path[0])}
    home = guess.path.rpartition(".")[0]
    incomplete = not context.has(home) and any(key.path != guess.path for key in context.known.required(home))
    if homes <= {*_PRECISIONS, "bfloat16"} or incomplete or (guess.target[0] not in TYPED and context.has(guess.path)):
        yield removal
        return
    yield context.move(entry, guess.target, say("Move it to `{path}`", path=guess.path), safe=False)
    if refused:
        yield removal


def _switch(context: Context, entry: Entry, guess: Guess) -> Fix:
    """Return the fix that switches on the section which a value names, and off the one that holds the value."""

    def write(path: Path, *, on: bool) -> Callable[[Document], tuple[TextEdit, ...]]:
        edit = editing.insert if context.document.node_at(path) is None else editing.replace
        return lambda document: edit(document, path, on)

    steps = [lambda document: editing.remove(document, entry.path), write(guess.target, on=True)]
    here = (*entry.path[:-1], "enabled")
    if context.document.node_at(here) is not None:
        steps.append(write(here, on=False))
    return context.fix_all(say("Switch on `{path}` instead", path=guess.path), steps, safe=False)
