"""Whole files and whole sections."""

from __future__ import annotations

import json

import pytest

from dsmigrate.editing.completion import Item, Kind, complete, documentation
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings
from tests.editing.completion.accepting import accepted
from tests.editing.marked import marked

FILE = """{
  "train_micro_batch_size_per_gpu": 8,
  "gradient_accumulation_steps": 1,
  "gradient_clipping": 1.0,
  "fp16": {
    "enabled": true,
    "loss_scale": 0,
    "initial_scale_power": 16,
    "loss_scale_window": 1000,
    "hysteresis": 2,
    "min_loss_scale": 1
  },
  "optimizer": {
    "type": "AdamW",
    "params": {
      "lr": 0.0001,
      "weight_decay": 0.01
    }
  }
}
"""


def offered(text: str, kind: Kind, settings: Settings | None = None, *, snippets: bool = False) -> dict[str, Item]:
    """Return the items of a kind at the mark."""
    view, offset = marked(text, settings)
    return {item.label: item for item in complete(view, offset, snippets=snippets) if item.kind is kind}


@pytest.mark.parametrize("text", ["|", "fp|", '"fp|"', '"fp|', "\n\n|", "// ours\n|"])
def test_an_empty_file_starts_whole(text: str) -> None:
    found = offered(text, Kind.FILE)
    assert "ZeRO-2 with bf16" in found
    view, _ = marked(text)
    after = accepted(view.text, found["Data parallel only, fp16"])
    assert json.loads(after[after.index("{") :]) == json.loads(FILE)


@pytest.mark.parametrize("text", ["{\n  |\n}\n", '{\n  "fp|"\n}\n', '{\n  "fp|\n}\n'])
def test_an_empty_root_takes_the_members_of_a_file(text: str) -> None:
    view, _ = marked(text)
    assert accepted(view.text, offered(text, Kind.FILE)["Data parallel only, fp16"]) == FILE


def test_an_empty_root_on_one_line_is_spread() -> None:
    after = accepted("{}", offered("{|}", Kind.FILE)["Data parallel only, fp16"])
    assert after == FILE.replace("  ", "    ").strip()


def test_files_are_for_the_reader_of_the_config() -> None:
    trainer = Settings(consumer=Consumer.TRANSFORMERS)
    assert next(iter(offered("|", Kind.FILE, trainer))) == "Transformers Trainer, ZeRO-2"
    assert not [name for name in offered("|", Kind.FILE) if name.startswith(("Transformers", "Accelerate"))]


def test_files_are_offered_only_where_there_is_nothing() -> None:
    assert offered('{"train_batch_size": 8, |}', Kind.FILE) == {}
    assert offered('{"bf16": {|}}', Kind.FILE) == {}


def test_sections_stand_behind_their_key() -> None:
    view, offset = marked('{"train_batch_size": 8, |}')
    labels = [item.label for item in complete(view, offset, snippets=False)]
    start = labels.index("optimizer")
    assert labels[start : start + 4] == ["optimizer", "optimizer: AdamW", "optimizer: Adam with L2", "optimizer: Lion"]


def test_a_section_has_tab_stops_at_its_numbers_and_free_texts() -> None:
    found = offered('{"train_batch_size": 8, "tensorb|"}', Kind.SNIPPET, snippets=True)
    item = found["tensorboard: TensorBoard"]
    assert item.new_text == '"tensorboard": {"enabled": true, "output_path": "${1:logs}", "job_name": "${2:train}"}'
    assert item.filter_text == '"tensorboard: TensorBoard"'


def test_sections_that_the_file_excludes_are_not_offered() -> None:
    found = offered('{"fp16": {"enabled": true}, |}', Kind.SNIPPET)
    assert "bf16: bf16" not in found
    assert "zero_optimization: ZeRO-3" in found
    static = '{"optimizer": {"type": "Lamb"}, |}'
    assert "fp16: fp16, dynamic loss scale" in offered(static, Kind.SNIPPET)
    assert "fp16: fp16, fixed loss scale" not in offered(static, Kind.SNIPPET)


def test_sections_of_another_release_are_not_offered() -> None:
    assert "elasticity: Elastic batch size" not in offered("{|}", Kind.SNIPPET)
    old = offered('{"wall_clock_breakdown": true, |}', Kind.SNIPPET, Settings(version="0.12.6"))
    assert "elasticity: Elastic batch size" in old
    assert "torch_autocast: torch autocast, bf16" not in old


def test_the_documentation_shows_what_is_written() -> None:
    item = offered('{"train_batch_size": 8, |}', Kind.SNIPPET)["bf16: bf16"]
    assert documentation("0.19.8", "deepspeed", item.data) == (
        'bfloat16, no loss scaling needed.\n\n```json\n"bf16": {\n  "enabled": true\n}\n```'
    )
