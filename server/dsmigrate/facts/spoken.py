"""Sentences that stand in the facts and not in the code: units, what a consumer takes a value from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from dsmigrate.facts import messages
from dsmigrate.facts.sources import read, read_toml

HOLDERS = ("optimizer", "scheduler")


def spoken(folder: Path) -> dict[str, str]:
    """Return each of them with where it stands; ``folder`` is ``schemas/deepspeed``."""
    return (
        dict.fromkeys(_of_codes(), "codes")
        | dict.fromkeys(_of_conversions(), "convert_codes")
        | dict.fromkeys(_texts(folder), "facts")
        | dict.fromkeys(_of_forms(folder), "convert_facts")
        | dict.fromkeys(messages.spoken(folder), "messages")
        | {bug["what"]: "known_bugs" for bug in read_toml(folder / "known-bugs.toml").values()}
        | {one["what"]: "frameworks" for one in read_toml(folder / "frameworks.toml").values()}
    )


def _of_codes() -> Iterator[str]:
    """Yield what rules and explanations say of themselves."""
    from dsmigrate.diff.registry import every_explanation  # noqa: PLC0415 - hundreds of modules
    from dsmigrate.rules.registry import every_rule  # noqa: PLC0415

    for rule in every_rule():
        yield from (rule.summary, rule.why)
    for item in every_explanation():
        yield from (item.summary, item.why)


def _of_conversions() -> Iterator[str]:
    """Yield what codes of conversions say of themselves."""
    from dsmigrate.convert.explained import every_conversion  # noqa: PLC0415 - a package of its own

    for item in every_conversion():
        yield from (item.summary, item.why, item.advice)


def _of_forms(folder: Path) -> Iterator[str]:
    """Yield what is said of FSDP's settings."""
    fsdp = read_toml(folder / "forms.toml")["fsdp"]
    yield from fsdp["near"].values()
    yield from (lost["message"] for lost in fsdp["lost"].values())
    yield from fsdp["told"].values()


def _texts(folder: Path) -> Iterator[str]:
    sources = read(folder)
    for tables in (*sources.prose.values(), *sources.types.values()):
        for table in tables.values():
            if "unit" in table:
                yield str(table["unit"])
            yield from (one for one in _listed(table.get("class")) if " " in one)
    yield from _texts_of(sources.snippets, "summary")
    yield from _texts_of(sources.consumers, "from")
    yield from _texts_of(sources.consumers, "short")
    for means in sources.snippets.get("names", {}).values():
        yield from means.values()
    yield from HOLDERS


def _listed(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _texts_of(table: Mapping[str, object], field: str) -> Iterator[str]:
    """Yield every text of that name in a table and in those inside of it."""
    for name, value in table.items():
        if name == field and isinstance(value, str) and value:
            yield value
        elif isinstance(value, Mapping):
            yield from _texts_of(value, field)
