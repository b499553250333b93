"""What is offered in the YAML of ``accelerate launch``; ``|`` marks the cursor."""

from __future__ import annotations

import pytest

from dsmigrate.convert.facts import fields
from dsmigrate.convert.forms.completing import Offer, offers
from dsmigrate.knowledge import knowledge

HEAD = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n"


def offered(marked: str) -> list[Offer]:
    offset = marked.index("|")
    return offers(marked.replace("|", "", 1), offset, knowledge())


def accepted(marked: str, label: str) -> str:
    """The text after an offer was accepted."""
    found = next(offer for offer in offered(marked) if offer.label == label)
    text = marked.replace("|", "", 1)
    return text[: found.start] + found.text + text[found.end :]


def test_fields_that_are_missing_are_offered_with_what_they_do() -> None:
    found = offered(f"{HEAD}  gr|\n")
    assert [offer.label for offer in found] == [name for name in fields() if name != "zero_stage"]
    clipping = next(offer for offer in found if offer.label == "gradient_clipping")
    assert (
        clipping.detail == "Largest global L2 norm of the gradients; larger ones are scaled down to it before the step."
    )
    assert clipping.path == "gradient_clipping"
    assert accepted(f"{HEAD}  gr|\nnum_processes: 2\n", "gradient_clipping") == (
        f"{HEAD}  gradient_clipping: \nnum_processes: 2\n"
    )
    assert accepted(f"{HEAD}  gr|: 1.0\n", "gradient_clipping") == f"{HEAD}  gradient_clipping: 1.0\n"


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("zero_stage: |", ["0", "1", "2", "3"]),
        ("offload_param_device: n|v  # where", ["none", "cpu", "nvme"]),
        ("zero3_save_16bit_model: |", ["true", "false"]),
        ("no_such_field: |", []),
    ],
)
def test_values_are_those_that_a_field_takes(line: str, values: list[str]) -> None:
    assert [offer.label for offer in offered(f"deepspeed_config:\n  {line}\n")] == values


def test_a_value_replaces_the_one_that_is_there() -> None:
    text = "deepspeed_config:\n  offload_param_device: c|pu # here\n"
    assert accepted(text, "nvme") == "deepspeed_config:\n  offload_param_device: nvme # here\n"


@pytest.mark.parametrize("text", ["num_|\n", f"{HEAD}num_|", "jobs:\n  zero_|\n", "deepspeed_config: {zero_|}\n", "|"])
def test_nothing_is_offered_elsewhere(text: str) -> None:
    assert offered(text) == []
