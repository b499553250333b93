"""What releases of Transformers and Accelerate do: each difference by its own example, told in its releases alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsmigrate.document import parse
from dsmigrate.facts.sources import read_toml
from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.bugs import Bug, of_frameworks
from dsmigrate.knowledge.versions import order
from dsmigrate.rules import Arguments, Facts, Finding, Settings, check

FOLDER = Path(__file__).parents[2] / "schemas" / "deepspeed"
RELEASES: dict[str, list[str]] = {
    name: package.get("releases", []) for name, package in read_toml(FOLDER / "messages" / "packages.toml").items()
}


def told(one: Bug, release: str | None, *, version: str | None = None) -> list[Finding]:
    facts = Facts(
        transformers=release if one.package == "transformers" else None,
        accelerate=release if one.package == "accelerate" else None,
        through_accelerate=one.through,
    )
    settings = Settings(version=version, consumer=Consumer(one.package), facts=facts, select=("DS822",))
    return [found for found in check(parse(one.example), settings) if one.said in found.message]


@pytest.mark.parametrize("one", of_frameworks(), ids=lambda one: one.id)
def test_a_difference_is_told_from_its_first_release_to_its_last(one: Bug) -> None:
    releases = RELEASES[one.package]
    assert one.last is not None
    first, last = releases.index(one.first), releases.index(one.last)
    assert [len(told(one, release)) for release in (releases[first], releases[last])] == [1, 1]
    spared = [*releases[max(first - 1, 0) : first], *releases[last + 1 : last + 2]]
    assert [told(one, release) for release in spared] == [[] for _ in spared]
    assert told(one, None) == []


@pytest.mark.parametrize("one", [one for one in of_frameworks() if one.through], ids=lambda one: one.id)
def test_what_comes_through_accelerate_is_told_of_no_config_that_the_trainer_names(one: Bug) -> None:
    facts = Facts(transformers=one.first)
    asked = Settings(consumer=Consumer.TRANSFORMERS, facts=facts, select=("DS822",))
    assert check(parse(one.example), asked) == []
    named = Facts(
        transformers=one.first,
        through_accelerate=True,
        arguments=(Arguments("run.sh:1", {"deepspeed": "ds.json"}),),
    )
    assert check(parse(one.example), Settings(consumer=Consumer.TRANSFORMERS, facts=named, select=("DS822",))) == []


@pytest.mark.parametrize("one", [one for one in of_frameworks() if one.deepspeed != "0.9.0"], ids=lambda one: one.id)
def test_an_earlier_deepspeed_does_not_mind(one: Bug) -> None:
    releases = json.loads((FOLDER / "releases.json").read_text(encoding="utf-8"))["releases"]
    before = releases[releases.index(one.deepspeed) - 1]
    assert len(told(one, one.first, version=one.deepspeed)) == 1
    assert told(one, one.first, version=before) == []


def test_what_is_filled_is_what_the_sources_say() -> None:
    """Differences of what is filled are where the derived expressions change."""
    for name, path in (("transformers", "stage3_prefetch_bucket_size"), ("accelerate", "stage3_prefetch_bucket_size")):
        filled = json.loads((FOLDER / "consumers" / f"{name}.json").read_text(encoding="utf-8"))["fills"]
        spans = filled[f"zero_optimization.{path}"]
        one = next(one for one in of_frameworks() if one.id == f"{name}-prefetch-fraction")
        assert (one.first, one.last) == tuple(spans[0][:2])
        assert "int(" in spans[1][2]


@pytest.mark.parametrize("name", ["transformers", "accelerate"])
def test_every_key_that_is_said_to_be_filled_was_or_is_filled(name: str) -> None:
    facts = read_toml(FOLDER / "consumers.toml")[name]
    derived = json.loads((FOLDER / "consumers" / f"{name}.json").read_text(encoding="utf-8"))
    newest, filled = derived["releases"][-1], derived["fills"]
    last = {path: spans[-1][1] for path, spans in filled.items()}
    for path, until in facts.get("filled_until", {}).items():
        assert order(last[path]) < order(until) <= order(derived["releases"][derived["releases"].index(last[path]) + 1])
    gone = {path for path, release in last.items() if release != newest and "." in path}
    assert gone - facts.get("filled_until", {}).keys() <= {
        "zero_optimization.offload_optimizer.device",
        "zero_optimization.offload_param.device",
    }
