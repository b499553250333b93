"""What hovers say, and in which order; what they are about is marked with ``|``."""

from __future__ import annotations

import pytest

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.hover import Hover, hover_at, plain
from dsmigrate.editing.urls import DOCS
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings
from tests.editing.hover.asking import hover, paragraphs
from tests.editing.marked import cut, marked


def about(text: str, settings: Settings | None = None) -> str:
    """The text that the hover is about."""
    view, offset = marked(text, settings)
    found = hover_at(view, offset)
    assert found is not None
    return cut(view, (found.start, found.end))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"zero_optimization": {"st|age": 3}}', '"stage"'),
        ('{"zero_optimization": {"stage|": 3}}', '"stage"'),
        ('{"zero_optimization": {"stage": |3}}', "3"),
        ('{"zero_optimization": |{"stage": 3}}', "{"),
        ('{"optimizer": {"type": "AdamW", "params": {"betas": [0.9, 0.9|5]}}}', "0.95"),
        ('{"optimizer": {"type": "AdamW", "params": {"betas": |[0.9, 0.95]}}}', "["),
        ("zero_optimization: {stage: 3, overlap_comm: tr|ue}", "true"),
        ('{"zero_optimization": {"sta|', '"sta'),
    ],
)
def test_a_hover_is_about_a_key_or_a_value(text: str, part: str) -> None:
    assert about(text) == part


@pytest.mark.parametrize(
    "text",
    [
        '{"zero_optimization":| {"stage": 3}}',
        '{"zero_optimization": {"stage": 3} | }',
        '{"a": 1} // com|ment',
        "|",
        '{"bogus": {"sta|ge": 3}}',
        '{"bogus": |3}',
        "|{}",
        "|[]",
        '{"optimizer": {"params": {"betas": {"x|": 3}}}}',
    ],
)
def test_between_keys_and_below_unknown_ones_there_is_nothing(text: str) -> None:
    assert hover_at(*marked(text)) is None


def test_a_hover_begins_with_what_it_is_and_its_facts() -> None:
    assert hover('{"wall_clock_br|eakdown": false}').markdown.split("\n\n") == [
        "Times forward, backward, reduction and step, and prints the times of every micro-step.",
        "`wall_clock_breakdown` · boolean · default `false` · 0.9 or earlier",
        "**In this file**",
        "- The value is the default of 0.19.8: leaving the key out means the same.",
        (
            "Timers surround the phases of each micro-step. After each `step()` call rank 0 prints the micro times, on "
            "boundaries also the totals of the optimizer step; a configured monitor gets the totals. They bypass "
            "the logger, "
            "so `log_level` and `steps_per_print` do not thin them out (a pipeline engine prints them at the rate of "
            "`steps_per_print`)."
        ),
        (
            "Reading the timers waits for the GPU in every micro-step, which costs overlap. "
            "`flops_profiler.enabled` switches "
            "it on as well."
        ),
        "**When to change it.** True for a few dozen steps while looking for the slow phase, false in production.",
        (
            '**Trap.** `null` or a string such as `"true"` is a bare `TypeError` when the config is read. A '
            "pipeline also "
            "needs `steps_per_print`, else its first optimizer step fails."
        ),
        "See also `steps_per_print`, `flops_profiler.enabled`, `memory_breakdown`, `timers.throughput.enabled`.",
        f"[Documentation]({DOCS}/keys/top_level.md#wall_clock_breakdown) · DeepSpeed 0.19.8 · plain DeepSpeed",
    ]


def test_the_order_is_the_same_for_all_keys() -> None:
    markdown = hover('{"zero_optimization": {"stage": 2, "stage3_max_live_param|eters": 5e8}}').markdown
    marks = [
        "Stop prefetching at stage 3",
        "`zero_optimization.stage3_max_live_parameters` · integer ≥ 0 (elements) · default `1000000000`",
        "**In this file**",
        "Inert: the ZeRO stage is 2",
        "Also accepted as `max_live_parameters`.",
        "Its one reader is the prefetcher",
        "**When to change it.**",
        "**Trap.**",
        "**Often said, but wrong.**",
        "See also `zero_optimization.stage3_max_reuse_distance`",
        "[Documentation](",
    ]
    places = [markdown.index(mark) for mark in marks]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('{"zero_optimization": {"stage": |2}}', "`2`: gradients sharded too"),
        (
            '{"zero_optimization": {"offload_optimizer": {"device": "c|pu"}}}',
            "`cpu`: states in host memory, update on the CPU",
        ),
        ('{"communication_data_type": "|FP32"}', "`FP32`: 4 bytes per element"),
        ('{"gradient_clipping": |1.0}', "`1.0`: usual for transformers; the default since 0.19.3"),
        ('{"managed_gradient_accumulation": |true}', "`true`: the engine counts micro-steps and finds the boundary"),
        (
            '{"optimizer": {"type": "AdamW", "params": {"adam_w_mode": |false}}}',
            "`false`: decoupled decay all the same",
        ),
        ('{"optimizer": {"type": "AdamW", "params": {"lr": |2e-5}}}', "`2e-5`: full fine-tuning of a language model"),
        (
            '{"optimizer": {"type": "AdamW", "params": {"betas": [0.9, |0.95]}}}',
            "beta2, the decay of the average of their squares (second moment).",
        ),
    ],
)
def test_a_value_begins_with_what_it_means(text: str, first: str) -> None:
    assert paragraphs(text)[0] == first


def test_the_history_is_told_where_there_is_one() -> None:
    assert "**History**\n\n- 0.9.0: there in 0.9.0 or earlier\n- 0.19.3: default `0.0` → `1.0`" in (
        hover('{"gradient_cl|ipping": 1}').markdown
    )
    assert "**History**" not in hover('{"zero_allow_untested_opt|imizer": true}').markdown


@pytest.mark.parametrize(
    ("text", "version", "first"),
    [
        (
            '{"am|p": {}}',
            None,
            (
                "**Removed: DeepSpeed rejects a config that holds it since 0.19.8; use `torch_autocast`, `bf16` or "
                "`fp16`.**"
            ),
        ),
        ('{"am|p": {}}', "0.19.7", "Handed model and optimizer to NVIDIA Apex AMP; 0.19.8 rejects the block at load."),
        (
            '{"zero_optimization": {"cpu_off|load": true}}',
            None,
            "**Deprecated; use `zero_optimization.offload_optimizer`.**",
        ),
        ('{"torch_auto|cast": {}}', "0.14.0", "**Not in DeepSpeed 0.14.0: it came with 0.17.2.**"),
        (
            '{"seq_parallel_comm_data_|type": "bf16"}',
            None,
            "**Not read any more since 0.16.5; use `seq_parallel_communication_data_type`.**",
        ),
    ],
)
def test_keys_that_are_gone_or_not_there_yet_say_so_first(text: str, version: str | None, first: str) -> None:
    assert paragraphs(text, Settings(version=version))[0] == first


def test_another_name_is_explained_by_the_first_one() -> None:
    found = paragraphs('{"bfloat1|6": {"enabled": true}}')
    assert found[1].startswith("`bf16` · object or null")
    assert "`bfloat16` is another name of `bf16`." in found


def test_keys_that_no_release_knows_say_so_with_the_nearest() -> None:
    assert paragraphs('{"gradient_clip|ing": 1}') == [
        "No DeepSpeed release since 0.9 reads a key `gradient_cliping` at the top level.",
        "It is swallowed without a word, and does nothing.",
        "Near it: `gradient_clipping`.",
    ]
    assert paragraphs('{"zero_optimization": {"stag|": 1}}') == [
        "No DeepSpeed release since 0.9 reads a key `stag` in `zero_optimization`.",
        "DeepSpeed rejects a config that holds it.",
        "Near it: `zero_optimization.stage`.",
        f"[Documentation]({DOCS}/keys/zero_optimization.md#zero_optimization) · DeepSpeed 0.19.8 · plain DeepSpeed",
    ]
    assert paragraphs('{"zero_optimization.sta|ge": 1}')[0] == (
        "No DeepSpeed release since 0.9 reads a key `zero_optimization.stage` at the top level."
    )


def test_optimizer_types_and_their_parameters_are_explained() -> None:
    found = paragraphs('{"optimizer": {"type": "Adam|W", "params": {}}}')
    assert found[0] == "Adam with decoupled weight decay; the right choice for most training."
    assert found[1].startswith("`optimizer.type` · builds FusedAdam (deepspeed.ops.adam) without optimizer offload; ")
    assert found[2:4] == ["**In this file**", "- `AdamW` builds `FusedAdam` here."]
    assert found[-1].startswith(f"[Documentation]({DOCS}/keys/optimizer_types.md#adamw-optimizer)")
    assert paragraphs('{"optimizer": {"type": "AdamW", "params": {"weight_de|cay": 0.1}}}')[:2] == [
        "Decoupled decay: each step shrinks every weight of the group by `lr * weight_decay`.",
        "`optimizer.params.weight_decay` of `AdamW` · number · default `0.0`",
    ]
    assert paragraphs('{"scheduler": {"type": "OneCycle", "params": {"cycle_first_step_|size": 1}}}')[1] == (
        "`scheduler.params.cycle_first_step_size` of `OneCycle` · number > 0 (steps) · default `2000`"
    )


@pytest.mark.parametrize(
    ("text", "version", "first"),
    [
        ('{"optimizer": {"type": "OneBit|Adam"}}', None, "**Removed: DeepSpeed does not build it since 0.19.7.**"),
        ('{"optimizer": {"type": "Mu|on"}}', "0.16.0", "**Not in DeepSpeed 0.16.0: it came with 0.17.6.**"),
        ('{"optimizer": {"type": "Adom|W"}}', None, "No DeepSpeed release since 0.9 builds an optimizer `AdomW`."),
        (
            '{"optimizer": {"type": "AdamW", "params": {"le|arning_rate": 1}}}',
            None,
            "`AdamW` takes no parameter `learning_rate`.",
        ),
        (
            '{"optimizer": {"params": {"l|r": 1}}}',
            None,
            "What `lr` does depends on `optimizer.type`, which names no type that is known.",
        ),
    ],
)
def test_types_and_parameters_that_are_not_there_say_so_first(text: str, version: str | None, first: str) -> None:
    assert paragraphs(text, Settings(version=version))[0] == first


def test_the_brace_of_the_root_sums_the_file_up() -> None:
    assert hover('|{"train_batch_size": 4}') == Hover(0, 1, "ZeRO off, fp32; effective batch 4")


def test_the_footer_names_what_was_guessed() -> None:
    document = parse('{"gradient_clipping": 1}')
    settings = Settings(version="0.19.5", consumer=Consumer.ACCELERATE)
    view = View(document, settings, why_version="pinned in requirements.txt", why_consumer='"auto" at lr')
    found = hover_at(view, 3)
    assert found is not None
    assert found.markdown.endswith(' · DeepSpeed 0.19.5 (pinned in requirements.txt) · Accelerate ("auto" at lr)')


def test_a_hover_can_be_read_without_markdown() -> None:
    text = plain(hover('{"zero_optimization": {"stage": |2}}').markdown)
    assert text.startswith("2: gradients sharded too\n\nWhat is sharded: 0 nothing, 1 optimizer states")
    assert f"\nDocumentation ({DOCS}/keys/zero_optimization.md#zero_optimizationstage) · DeepSpeed" in text
    assert "`" not in text
    assert "**" not in text


def test_asking_does_not_run_the_rules() -> None:
    view, offset = marked('{"zero_optimization": {"stage": 2, "stage3_max|_live_parameters": 1}}')
    assert hover_at(view, offset) is not None
    assert "findings" not in vars(view)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"train_batch_size": 1, "zero_optimization": {"stage": 2, "stage3_max_li|ve_parameters": 1}}', "Inert:"),
        ('{"train_batch_size": 1, "am|p": {}}', "**Removed:"),
        ('{"train_batch_size": 1, "zero_optimization": {"stage": 1, "cpu_off|load": true}}', "**Deprecated;"),
        ('{"train_batch_size": 1, "zero_optimization": {"stage": 2, "allgather_part|itions": false}}', "No effect."),
        ('{"train_batch_size": 1, "zero_optimization": {"stage": "au|to"}}', 'DeepSpeed drops "auto"'),
        ('{"train_batch_size": 1, "gradient_clip|ing": 1}', "No DeepSpeed release"),
        ('{"train_batch_size": 1, "optimizer": {"type": "Adom|W"}}', "No DeepSpeed release"),
        (
            '{"train_batch_size": 5|, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1}',
            "No world size fits",
        ),
    ],
)
def test_what_a_diagnostic_says_is_not_said_again(text: str, said: str) -> None:
    view, offset = marked(text)
    before = hover_at(view, offset)
    assert before is not None
    assert said in before.markdown
    assert any(finding.start <= offset <= finding.end for finding in view.findings)
    after = hover_at(view, offset)
    assert after is None or said not in after.markdown


def test_known_bugs_are_those_of_the_release_at_hand_a_few_with_their_cure() -> None:
    text = '{"zero_optimization": {"stage": 2, "overlap|_comm": true}}'
    shown = hover(text, Settings(version="0.17.3")).markdown
    assert "**Known bugs of DeepSpeed 0.17.3**" in shown
    assert "(`overlap-comm-nan`; fixed in 0.19.0; until then set `zero_optimization.overlap_comm: false`)" in shown
    assert "overlap-comm-no-wait" not in shown
    assert "Known bugs" not in hover(text, Settings(version="0.19.8")).markdown
    many = hover(
        '{"zero_optimization": {"offload_optimizer": {"dev|ice": "nvme"}}}', Settings(version="0.15.4")
    ).markdown
    assert many.count("\n- with offload") + many.count("\n- each step") + many.count("\n- all ranks") == 3
    assert "more: `dsmigrate explain zero_optimization.offload_optimizer.device`" in many
