from __future__ import annotations

import pytest

from dsmigrate.editing import View
from dsmigrate.editing.actions import actions
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings
from tests.editing.actions.offering import carried_out, changed, offered
from tests.editing.marked import marked

NAME = "write-default"
CLIPPING = "Write `gradient_clipping: 1.0`, which is the default"


def test_a_default_that_decides_is_written_in_the_section_of_the_cursor() -> None:
    text = '{"train_batch_size": |8}'
    assert list(offered(text, NAME)) == [CLIPPING]
    assert changed(text, CLIPPING) == '{"train_batch_size": 8, "gradient_clipping": 1.0}'
    assert carried_out(text, CLIPPING).done == ("`gradient_clipping` says 1.0, which it meant before.",)


def test_the_default_is_that_of_the_release() -> None:
    text = '{"train_batch_size": |8}'
    assert list(offered(text, NAME, Settings(version="0.14.5"))) == [
        "Write `gradient_clipping: 0.0`, which is the default",
        "Write `steps_per_print: 10`, which is the default",
    ]


def test_a_section_has_its_own() -> None:
    text = '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "c|pu"}}}'
    assert changed(text, "Write `pin_memory: true`, which is the default") == (
        '{"train_batch_size": 8, "zero_optimization": {"stage": 2, '
        '"offload_optimizer": {"device": "cpu", "pin_memory": true}}}'
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"train_batch_size": |8, "gradient_clipping": 0.0}',
        '{"zero_optimization": {"stage": |2}}',
        '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "n|one"}}}',
        '{"my_own": {"a": |1}}',
        '{"optimizer": {"params": {"lr": |1}}}',
        "[|]",
        "|",
    ],
)
def test_nothing_is_offered_where_no_default_decides(text: str) -> None:
    assert offered(text, NAME) == {}


def test_what_a_consumer_compares_or_overwrites_is_left_to_it() -> None:
    text = '{"train_batch_size": "auto", |"zero_optimization": {"stage": 2}}'
    assert offered(text, NAME, Settings(consumer=Consumer.TRANSFORMERS)) == {}


def test_auto_that_deepspeed_drops_becomes_what_it_means() -> None:
    text = '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": "au|to"}}'
    assert list(offered(text, NAME)) == ["Write `reduce_bucket_size: 500000000`, which is the default"]
    assert changed(text, "Write `reduce_bucket_size: 500000000`") == (
        '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": 500000000}}'
    )
    assert offered(text, NAME, Settings(consumer=Consumer.TRANSFORMERS)) == {}


def test_keys_that_may_stand_elsewhere_are_not_added() -> None:
    view, offset = marked('{"train_batch_size": |8}')
    part = View(view.document, whole=False)
    assert [action for action in actions(part, offset, offset) if action.data[0] == NAME] == []
