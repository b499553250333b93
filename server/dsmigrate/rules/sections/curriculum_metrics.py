"""DS924: a metric of curriculum learning that the sampler cannot build."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Array, Member, Object, Path, Scalar
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_SECTION = "data_efficiency.data_sampling.curriculum_learning"
_ALWAYS = ("difficulty_type", "clustering_type", "min_difficulty", "max_difficulty", "schedule_type")
_BY_SCHEDULE = {
    "fixed_linear": ("total_curriculum_step", "difficulty_step"),
    "fixed_root": ("total_curriculum_step", "difficulty_step", "root_degree"),
    "fixed_discrete": ("difficulty", "max_step"),
}


@rule(
    "DS924",
    "curriculum-metric-incomplete",
    summary="A curriculum metric without a key its schedule or its index needs, or no directory for the clusters.",
    why="The keys are looked up when DeepSpeed builds the data loader: a missing one is an AssertionError or a "
    "KeyError there. `fixed_discrete` needs one difficulty more than it has steps, an assertion without a "
    "message. A loader of your own never gets that far, and has no curriculum either.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=(
        "deepspeed/runtime/data_pipeline/data_sampling/data_sampler.py:DeepSpeedDataSampler",
        "deepspeed/runtime/data_pipeline/curriculum_scheduler.py:CurriculumScheduler",
    ),
    keys=(f"{_SECTION}.curriculum_metrics", f"{_SECTION}.data_cluster_path"),
    examples=(
        Example(
            """{
  "train_batch_size": 8,
  "data_efficiency": {"data_sampling": {«"curriculum_learning"»: {
    "enabled": true,
    "curriculum_metrics": {
      «"seqlen"»: {"schedule_type": "fixed_linear", "min_difficulty": 8, "max_difficulty": 64},
      "rarity": {
        "difficulty_type": "value", "clustering_type": "single_cluster", "min_difficulty": 8, "max_difficulty": 64,
        "schedule_type": "fixed_discrete",
        "schedule_config": {"difficulty": «[8, 64]», "max_step": [100, 200]}
      }
    }
  }}}
}
"""
        ),
        Example(
            """{
  "train_batch_size": 8,
  "data_efficiency": {"data_sampling": {"curriculum_learning": {
    "enabled": true,
    "data_cluster_path": "/data/clusters",
    "curriculum_metrics": {
      "seqlen": {
        "difficulty_type": "value", "clustering_type": "single_cluster", "min_difficulty": 8, "max_difficulty": 64,
        "schedule_type": "fixed_linear", "schedule_config": {"total_curriculum_step": 100, "difficulty_step": 8}
      },
      "own": {
        "difficulty_type": "value", "clustering_type": "single_cluster", "min_difficulty": 8, "max_difficulty": 64,
        "schedule_type": "custom"
      }
    }
  }}}
}
"""
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each metric that lacks a key, and for the missing directory."""
    section, metrics = context.entry(_SECTION), context.entry(f"{_SECTION}.curriculum_metrics")
    if section is None or metrics is None or not isinstance(metrics.node, Object):
        return
    if not context.is_on(f"{_SECTION}.enabled"):
        return
    if not context.has(f"{_SECTION}.data_cluster_path"):
        yield context.finding(
            section, say("The data loader cannot be built without `data_cluster_path`: KeyError"), part="key"
        )
    for member in metrics.node:
        if member.name is not None and isinstance(member.node, Object):
            yield from _metric(context, (*metrics.path, member.name), member.node)


def _metric(context: Context, path: Path, metric: Object) -> Iterator[Finding]:
    schedule, config = _text(metric, "schedule_type"), _section(metric, "schedule_config")
    missing = [name for name in _ALWAYS if metric.get(name) is None]
    needed = _BY_SCHEDULE.get(schedule, ())
    if needed and config is None:
        missing.append("schedule_config")
    elif config is not None:
        missing += [f"schedule_config.{name}" for name in needed if config.get(name) is None]
    if _text(metric, "clustering_type") == "schedule_based":
        wanted = ["index_to_sample_path"]
        wanted += ["index_to_metric_path"] if _text(metric, "difficulty_type") == "value" else []
        missing += [name for name in wanted if metric.get(name) is None]
    if missing:
        yield context.finding(
            path,
            say(
                "The data loader cannot be built: this metric lacks {missing}",
                missing=say(", ").join(f"`{name}`" for name in missing),
            ),
            part="key",
        )
    difficulty, steps = _list(config, "difficulty"), _list(config, "max_step")
    if (
        schedule == "fixed_discrete"
        and difficulty is not None
        and steps is not None
        and len(difficulty) != len(steps) + 1
    ):
        yield context.finding(
            (*path, "schedule_config", "difficulty"),
            say(
                "{difficulty} difficulties do not fit {steps} steps: one more difficulty than steps is asserted",
                difficulty=len(difficulty),
                steps=len(steps),
            ),
        )


def _node(section: Object | None, name: str) -> Member | None:
    return section.get(name) if section is not None else None


def _text(section: Object, name: str) -> str:
    member = _node(section, name)
    return str(member.node.value()) if member is not None and isinstance(member.node, Scalar) else ""


def _section(section: Object, name: str) -> Object | None:
    member = _node(section, name)
    return member.node if member is not None and isinstance(member.node, Object) else None


def _list(section: Object | None, name: str) -> list[object] | None:
    member = _node(section, name)
    return member.node.value() if member is not None and isinstance(member.node, Array) else None
