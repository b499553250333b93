"""What hovers say, and in which order; what they are about is marked with ``|``."""

from __future__ import annotations

import statistics

import pytest

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.hover import Hover, Links, hover_at, plain
from dsmigrate.editing.urls import DOCS
from dsmigrate.knowledge import Consumer, knowledge
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


PAGE = f"{DOCS}/keys/zero_optimization.md#zero_optimization"


def test_a_hover_says_what_it_is_what_it_does_here_and_the_trap_and_leads_to_the_rest() -> None:
    text = '{"zero_optimization": {"stage": 2, "round_robin|_gradients": false}}'
    assert paragraphs(text) == [
        "Deal parameters out to the ranks in turn, so that consecutive gradients have different owners.",
        "`zero_optimization.round_robin_gradients` · boolean · default `false`",
        (
            "**In this file.** `false`: consecutive parameters share an owner. This is the default: leaving the key "
            "out means the same."
        ),
        f"See also [`offload_optimizer`]({PAGE}offload_optimizer), [`parameter_alignment`]({PAGE}parameter_alignment).",
        f"[More]({PAGE}round_robin_gradients) · DeepSpeed 0.19.8 · plain DeepSpeed",
    ]


def test_the_order_is_the_same_for_all_keys() -> None:
    markdown = hover('{"zero_optimization": {"stage": 2, "stage3_max_live_param|eters": 5e8}}').markdown
    marks = [
        "Stop prefetching at stage 3",
        "`zero_optimization.stage3_max_live_parameters` · integer ≥ 0 (elements) · default `1000000000`",
        "**In this file.** Inert: the ZeRO stage is 2",
        "**Trap.**",
        "See also [`stage3_max_reuse_distance`](",
        "[More](",
    ]
    places = [markdown.index(mark) for mark in marks]
    assert places == sorted(places)


def in_sight(markdown: str) -> str:
    """What a hover shows above its links."""
    shown = [part for part in markdown.split("\n\n") if not part.startswith(("See also [", "[More]("))]
    return plain("\n\n".join(shown))


@pytest.mark.parametrize("version", ["0.9.5", "0.15.4", "0.19.8"])
def test_no_key_of_any_section_says_more_than_fits_in_sight(version: str) -> None:
    known = knowledge(version)
    lengths = []
    for path in known.every_path():
        names = path.split(".")
        text = "".join(f'{{"{name}": ' for name in names) + "1" + "}" * len(names)
        found = hover_at(View(parse(text), Settings(version=version)), text.index(f'"{names[-1]}": 1') + 1)
        if found is not None:
            lengths.append(len(in_sight(found.markdown)))
            assert lengths[-1] <= 400, found.markdown
    assert len(lengths) > 300
    assert statistics.median(lengths) < 340


def test_a_note_that_does_not_fit_ends_with_a_whole_sentence() -> None:
    trap = next(part for part in paragraphs('{"sched|uler": {}}') if part.startswith("**Trap.**"))
    known = knowledge().key("scheduler")
    assert known is not None
    shown = trap.removeprefix("**Trap.** ")
    assert shown.endswith(".")
    assert known.trap.startswith(shown)
    assert len(shown) < len(known.trap)


def test_links_lead_into_the_editor_where_the_client_has_a_command_for_it() -> None:
    view, offset = marked('{"zero_optimization": {"stage": 2, "overlap|_comm": true}}')
    found = hover_at(view, offset, Links("dsmigrate.explain", "file:///w/ds_config.json"))
    assert found is not None
    arguments = "%5B%22zero_optimization.overlap_comm%22%2C%20%22file%3A%2F%2F%2Fw%2Fds_config.json%22%5D"
    assert f"[More](command:dsmigrate.explain?{arguments})" in found.markdown
    assert "[`reduce_bucket_size`](command:dsmigrate.explain?%5B%22zero_optimization.reduce_bucket_size%22" in (
        found.markdown
    )
    assert DOCS not in found.markdown


def test_without_markdown_only_the_page_has_its_address() -> None:
    view, offset = marked('{"zero_optimization": {"stage": 2, "overlap|_comm": true}}')
    found = hover_at(view, offset, Links(in_text=False))
    assert found is not None
    assert plain(found.markdown).count("(https://") == 1
    assert "See also reduce_bucket_size, stage3_prefetch_bucket_size, contiguous_gradients." in plain(found.markdown)


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
        "It is silently ignored.",
        "Near it: `gradient_clipping`.",
    ]
    assert paragraphs('{"zero_optimization": {"stag|": 1}}') == [
        "No DeepSpeed release since 0.9 reads a key `stag` in `zero_optimization`.",
        "DeepSpeed rejects a config that holds it.",
        "Near it: `zero_optimization.stage`.",
        f"[More]({PAGE}) · DeepSpeed 0.19.8 · plain DeepSpeed",
    ]
    assert paragraphs('{"zero_optimization.sta|ge": 1}')[0] == (
        "No DeepSpeed release since 0.9 reads a key `zero_optimization.stage` at the top level."
    )


def test_optimizer_types_and_their_parameters_are_explained() -> None:
    found = paragraphs('{"optimizer": {"type": "Adam|W", "params": {}}}')
    assert found[0] == "Adam with decoupled weight decay; the right choice for most training."
    assert found[1] == "**In this file.** `AdamW` builds `FusedAdam` here."
    assert found[-1].startswith(f"[More]({DOCS}/keys/optimizer_types.md#adamw-optimizer)")
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
    assert hover('|{"train_batch_size": 4}') == Hover(0, 1, "- ZeRO: ZeRO off\n- Precision: fp32\n- Effective batch: 4")


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
    assert f"\nMore ({DOCS}/keys/zero_optimization.md#zero_optimizationstage) · DeepSpeed" in text
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


def test_known_bugs_are_those_of_the_release_at_hand_with_their_cure() -> None:
    text = '{"zero_optimization": {"stage": 2, "overlap|_comm": true}}'
    shown = hover(text, Settings(version="0.17.3")).markdown
    assert "**Known bug of DeepSpeed 0.17.3, 1 of 3.** `overlap_comm` uses one buffer for every bucket" in shown
    assert "fixed in 0.17.5; until then set `zero_optimization.overlap_comm: false`" in shown
    assert "Known bug" not in hover(text, Settings(version="0.19.8")).markdown
