"""The verdict in a line, and the order of what is said."""

from __future__ import annotations

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.run import compare_views
from dsmigrate.diff.side import Side
from dsmigrate.diff.verdict import verdict
from dsmigrate.knowledge import Consumer

from .examples import view

NOTHING = Pair(Side(view("{}"), "old"), Side(view("{}"), "new"), {})


def said(effect: Effect, severity: Severity, brief: str = "", *, tally: str = "", path: str = "a") -> Explained:
    return Explained("DF999", (path,), (effect,), severity, "Message", brief=brief, tally=tally)


def test_nothing_at_all_is_no_semantic_change() -> None:
    assert verdict(NOTHING, []) == "No semantic change"


def test_what_breaks_comes_before_training_before_costs_before_the_rest() -> None:
    every = [
        said(Effect.VALIDITY, Severity.BREAKING, "this"),
        said(Effect.VALIDITY, Severity.BREAKING, "that"),
        said(Effect.NUMERICS, Severity.WARNING, "effective batch 64 → 128"),
        said(Effect.MEMORY, Severity.INFO, "memory −38 % per GPU"),
        said(Effect.SPEED, Severity.INFO),
        said(Effect.NUMERICS, Severity.WARNING, tally="Left to Accelerate: {values}"),
        said(Effect.NUMERICS, Severity.WARNING, tally="Left to Accelerate: {values}"),
        said(Effect.OBSERVABILITY, Severity.INFO),
    ]
    assert verdict(NOTHING, every) == (
        "Breaks the config: this (and 1 more). Changes training: effective batch 64 → 128. Memory −38 % per GPU."
        " Touches speed. Left to Accelerate: 2 values. Changes what is logged"
    )


def test_more_than_three_things_are_counted_and_a_thing_without_a_name_goes_by_its_key() -> None:
    every = [said(Effect.NUMERICS, Severity.WARNING, path=path) for path in "abcde"]
    assert verdict(NOTHING, every) == "Changes training: `a`, `b`, `c` and 2 more"
    assert verdict(NOTHING, [said(Effect.NUMERICS, Severity.INFO, "rounding")]) == "Changes numbers a little: rounding"


def test_a_little_comes_after_what_costs_and_goes_unsaid_beside_another_training() -> None:
    little = said(Effect.NUMERICS, Severity.INFO, "rounding")
    lost = said(Effect.CHECKPOINT, Severity.BREAKING, "checkpoints of stage 2 no longer load")
    assert verdict(NOTHING, [lost, little]) == (
        "Checkpoints of stage 2 no longer load. Changes numbers a little: rounding"
    )
    batch = said(Effect.NUMERICS, Severity.WARNING, "effective batch 64 → 128")
    assert verdict(NOTHING, [batch, little]) == "Changes training: effective batch 64 → 128"


def test_a_fourth_cost_is_named_and_more_are_counted() -> None:
    costs = [said(Effect.MEMORY, Severity.INFO, brief, path=brief) for brief in ("a", "b", "c", "d", "e")]
    assert verdict(NOTHING, costs[:4]) == "A. B. C. D"
    assert verdict(NOTHING, costs) == "A. B. C. 2 more of this kind"


def test_an_effect_with_a_name_is_not_touched_besides() -> None:
    lost = said(Effect.CHECKPOINT, Severity.BREAKING, "checkpoints of stage 2 no longer load")
    assert verdict(NOTHING, [lost, said(Effect.CHECKPOINT, Severity.INFO)]) == "Checkpoints of stage 2 no longer load"


def test_the_advice_of_a_finding_is_not_in_the_verdict() -> None:
    old = '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}'
    result = compare_views(view(old), view(old.replace("2}", '2, "overlap_com": true}')))
    assert result.verdict.startswith("Breaks the config: DeepSpeed has no key `overlap_com`")
    assert ";" not in result.verdict
    assert "; did you mean" in result.explained[0].message
    back = compare_views(view(old.replace("2}", '2, "overlap_com": true}')), view(old))
    assert ";" not in back.explained[0].message  # what is gone needs no advice


def test_that_a_key_has_no_effect_is_not_said_where_more_is_said_of_it() -> None:
    old = '{"train_batch_size": "auto", "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto"}}'
    trainer = Consumer.TRANSFORMERS
    result = compare_views(view(old, consumer=trainer), view(old.replace("stage3_pre", "pre"), consumer=trainer))
    assert [one.code for one in result.explained] == ["DF110"]
    assert "without effect" not in result.verdict
    new = '{"zero_optimization": {"stage": 1}, "bf16": {"enabled": true}}'
    batch = new.replace("{", '{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", ', 1)
    gone = compare_views(view(batch, consumer=trainer), view(new, consumer=trainer))
    assert gone.explained[0].code == "DF110"
    assert {"train_batch_size", "train_micro_batch_size_per_gpu"} <= set(gone.explained[0].paths)
    assert not [one for one in gone.explained if one.severity is Severity.NONE]


def test_a_section_that_is_refused_is_told_once_with_its_keys() -> None:
    new = '{"train_batch_size": 8}'
    result = compare_views(view(new.replace("}", ', "amp": {"enabled": false}}')), view(new))
    assert [(one.code, one.paths) for one in result.explained] == [("DF111", ("amp", "amp.enabled"))]
    assert result.verdict == "No longer invalid"


def test_what_a_rule_says_of_an_absent_key_goes_with_its_absence() -> None:
    old = '{"train_batch_size": "auto", "gradient_clipping": "auto"}'
    sides = [
        view(one, version="0.9.0", consumer=Consumer.TRANSFORMERS) for one in (old, '{"train_batch_size": "auto"}')
    ]
    (one,) = (one for one in compare_views(*sides).explained if "gradient_clipping" in one.message + one.advice)
    assert one.code == "DF120"
    assert one.advice == "Without `gradient_clipping` DeepSpeed does not clip, whatever `max_grad_norm` says"


def test_one_value_is_not_values() -> None:
    one = said(Effect.NUMERICS, Severity.WARNING, tally="Left to Accelerate: {values}")
    assert verdict(NOTHING, [one]) == "Left to Accelerate: 1 value"


def test_that_neither_config_runs_comes_first() -> None:
    old = '{"train_batch_size": 8, "bf16": {"enabled": true, "loss_scale": 0}, "zero_optimization": {"stage": 2}}'
    result = compare_views(view(old), view(old.replace("2", "3")))
    assert result.verdict.startswith("Neither config runs: `loss_scale` in `bf16`: DeepSpeed rejects the config for it")
    assert "ZeRO-2 → ZeRO-3" in result.verdict


def test_edits_without_effect_are_counted() -> None:
    old = '{"train_batch_size": 8, "gradient_clipping": 1.0}'
    new = '{"train_batch_size": 8, "gradient_clipping": 0.5, "_note": 1, "prescale_gradients": false}'
    assert compare_views(view(old), view(new)).verdict == "Changes training: clipping 1 → 0.5. 2 edits without effect"
    quiet = compare_views(view(old), view(old.replace("}", ', "_note": 1}')))
    assert quiet.verdict == "No semantic change: 1 edit without effect"
    assert quiet.is_same
    inert = compare_views(view(old), view(old.replace("}", ', "fp16": {"loss_scale": 8}}')))
    assert inert.verdict == "Changes nothing that acts: 1 edit without effect"
    assert not inert.is_same


def test_what_matters_most_comes_first() -> None:
    result = compare_views(
        view('{"train_batch_size": 8, "steps_per_print": 5}'),
        view('{"train_batch_size": 8, "amp": {}, "gradient_clipping": 2, "dump_state": false, "steps_per_print": 7}'),
    )
    order = list(Severity)
    severities = [order.index(one.severity) for one in result.explained]
    assert severities == sorted(severities)
    assert result.worst is Severity.BREAKING
    assert {one.severity for one in result.explained} == set(Severity)


def test_explanations_that_are_not_asked_for_are_not_in_the_verdict() -> None:
    old, new = '{"train_batch_size": 8}', '{"train_batch_size": 8, "gradient_clipping": 2, "steps_per_print": 5}'
    result = compare_views(view(old), view(new), takes=lambda code: code.startswith("DF9"))
    assert {one.code[:3] for one in result.explained} == {"DF9"}
    assert "clipping" not in result.verdict


def test_half_of_the_precisions_is_off_where_both_files_have_the_other_on() -> None:
    """Both at once are refused, so that a consumer has nothing to decide."""
    trainer = Consumer.TRANSFORMERS
    on = '{"train_batch_size": "auto", "fp16": {"enabled": true}%s}'
    result = compare_views(view(on % "", consumer=trainer), view(on % ', "bf16": {"enabled": false}', consumer=trainer))
    assert result.is_same
    off = on.replace("true", "false")
    result = compare_views(
        view(off % "", consumer=trainer), view(off % ', "bf16": {"enabled": false}', consumer=trainer)
    )
    assert not result.is_same
    both = on % ', "bf16": {"enabled": "auto"}'
    result = compare_views(view(both, consumer=trainer), view(both.replace("true", '"auto"'), consumer=trainer))
    assert set(result.changes) == {"fp16.enabled"}
