"""Keys that DeepSpeed does not read: typos, comments, keys of an application, keys of other releases."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff import findings
from dsmigrate.diff.model import Change, Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.knowledge import MISSING, Key, Status
from dsmigrate.languages import say
from dsmigrate.rules import Effect as RuleEffect


@explanation(
    "DF102",
    "ignored-key",
    summary="A key that DeepSpeed does not read where it stands: a typo, a comment, a key of a script or of a release.",
    why=(
        "The top level and many sections silently ignore unknown keys. Such an edit changes nothing, even where"
        " its author meant it to."
    ),
    source=("deepspeed/runtime/config_utils.py:get_scalar_param", "deepspeed/runtime/config.py:_initialize_params"),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "gradient_cliping": 0.5}',
            "DeepSpeed has no key `gradient_cliping` and silently ignores it; did you mean `gradient_clipping`",
            paths=("gradient_cliping",),
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            '{"train_batch_size": 8, "gradient_cliping": 0.5}',
            '{"train_batch_size": 8, "gradient_clipping": 0.5}',
            "`gradient_cliping` was ignored; the value is now in `gradient_clipping`, where it counts",
            paths=("gradient_cliping",),
        ),
        Example(
            '{"train_batch_size": 8, "pipeline": {"overlap_comm": true}}',
            '{"train_batch_size": 8}',
            "It did nothing: DeepSpeed did not read it",
            paths=("pipeline.overlap_comm",),
        ),
        Example(
            '{"train_batch_size": 8, "_comment": "two nodes"}',
            '{"train_batch_size": 8, "_comment": "four nodes"}',
            "DeepSpeed ignores `_comment`",
        ),
        Example(
            '{"train_batch_size": 8, "offload_optimizer": {"device": "cpu"}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}',
            "`offload_optimizer` was ignored; it is now in `zero_optimization.offload_optimizer`, where it counts",
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"params": {"lr": 0.1}}}',
            '{"train_batch_size": 8, "optimizer": {"params": {"lr": 0.2}}}',
            "DeepSpeed does not read `optimizer.params.lr`: the section names no `type`",
        ),
        Example('{"train_batch_size": 8}', '{"train_batch_size": 8, "gradient_clipping": 0.5}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield a message for each key that neither side reads or refuses."""
    for path, change in pair.changes.items():
        if any(side.reads(path) or side.refuses(path) for side in (pair.old, pair.new)):
            continue
        yield pair.says(path, effects=(Effect.NONE,), severity=Severity.NONE, message=_message(pair, path, change))


def _message(pair: Pair, path: str, change: Change) -> str:
    name = path.rpartition(".")[2]
    successor = _now_at(pair, path, change) if change.new is MISSING else ""
    if successor:
        same = pair.new.written(successor) == change.old
        return say(
            "`{name}` was ignored; {word} is now in `{successor}`, where it counts",
            name=name,
            word=say("the value") if same else say("it"),
            successor=successor,
        )
    found = findings.at(pair.new, change.new_spot.path, RuleEffect.IGNORED) if change.new_spot is not None else None
    if found is not None:
        return found.message
    if change.new is MISSING:
        return say("It did nothing: DeepSpeed did not read it")
    return _of_key(pair.new, path, pair.new.known.key(path))


def _of_key(side: Side, path: str, key: Key | None) -> str:
    section = path.partition(".")[0]
    if path.startswith(("optimizer.params.", "scheduler.params.")):
        return say("DeepSpeed does not read `{path}`: the section names no `type`", path=path)
    if key is not None and key.status is Status.NOT_YET:
        return say(
            "DeepSpeed {known_version} does not know `{path}`, which came with {since}",
            known_version=side.known.version,
            path=path,
            since=key.since,
        )
    if key is not None and key.until:
        return say(
            "DeepSpeed {known_version} does not read `{path}`, which is gone since {until}",
            known_version=side.known.version,
            path=path,
            until=key.until,
        )
    where = say(" in `{rpartition}`", rpartition=path.rpartition(".")[0]) if "." in path and section != path else ""
    return say("DeepSpeed ignores `{rpartition}`{where}", rpartition=path.rpartition(".")[2], where=where)


def _now_at(pair: Pair, path: str, change: Change) -> str:
    """Return the key that the new side has instead of an ignored one: what it may mean, and what came."""
    name = path.rpartition(".")[2]
    section = path.rpartition(".")[0]
    for guess in pair.new.known.nearest(name, section):
        if guess in pair.came and pair.new.written(guess) == change.old:
            return guess
        if isinstance(change.old, dict) and any(added.startswith(f"{guess}.") for added in pair.came):
            return guess
    return ""
