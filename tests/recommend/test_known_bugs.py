"""What is recommended for a release avoids its known bugs where a setting does, and names the others."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from dsmigrate.memory.activations import Loss
from dsmigrate.recommend import Recommendation, Request, recommend
from dsmigrate.recommend.reasons import notes, reasons
from dsmigrate.rules.known_bugs import met

from .grid import requests


def on_two_gpus(version: str) -> Recommendation:
    request = next(one for one in islice(requests(), 40) if one.machine.ranks > 1 and one.work.micro_batch == 8)
    return recommend(
        Request(request.described, request.machine, replace(request.work, loss=Loss.FUSED), version=version)
    )


def test_a_setting_avoids_the_bugs_of_a_release_and_costs_what_it_costs() -> None:
    found = on_two_gpus("0.14.0").chosen
    assert found is not None
    assert found.config["zero_optimization"]["overlap_comm"] is False
    assert not any(bug.sets or bug.removes for bug in met(found.view.context))
    assert not any("hidden" in one for one in reasons(found))


def test_bugs_that_no_setting_avoids_are_named() -> None:
    for version in ("0.9.5", "0.12.6", "0.18.9"):
        answer = on_two_gpus(version)
        assert answer.chosen is not None
        left = met(answer.chosen.view.context)
        assert [bug.id for bug in left if not any(bug.said in note for note in notes(answer))] == []
