"""Compare the JSON Schema with the real DeepSpeed on every config of a folder.

    python -m tests.benchmarks.schema_agreement FOLDER [--list] [--json]

DeepSpeed is asked in a child process (``DSMIGRATE_TORCH_PYTHON`` names its interpreter), with "auto" filled where a
consumer fills it and with a world size that fits the batch keys. Every disagreement gets a reason; one without makes
the command exit with 1. What the schema rejects is also asked alone, and configs that both reject are asked again
without it: DeepSpeed stops at the first error, and both should mean the same one.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import hjson

from dsmigrate.knowledge import knowledge
from tests.schemas import judge, support

Config = dict[str, Any]
UNEXPLAINED = "UNEXPLAINED"
TWICE = "a key is there twice"
BATCH = "train_batch_size"
SUFFIXES = frozenset({".json", ".conf", ".hjson"})
BEYOND_A_SCHEMA = (
    ("no batch size is given", r"needs to be provided"),
    ("arithmetic of the batch keys", r"batch related parameters|has to be greater than 0|is not defined"),
    ("two keys that exclude each other", r"simultaneously|together|not supported with|extra_forbidden"),
    ("a key that needs another one", r"only supported|requires|must be"),
    (TWICE, r"Duplicate keys"),
    ("needs a GPU", r"use_gds|GDS"),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the schema rejects, and why DeepSpeed takes it alone ("" if it refuses it too)."""

    path: str
    keyword: str
    value: object
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """What the schema and DeepSpeed say of one config."""

    name: str
    findings: tuple[Finding, ...]
    error: str | None
    error_without_findings: str | None = None

    @property
    def verdict(self) -> str:
        """Which of the two accepts it."""
        if self.findings:
            return "schema stricter" if self.error is None else "both reject"
        return "both accept" if self.error is None else "schema laxer"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why they differ; for a config that both reject, why DeepSpeed still does without what the schema rejects."""
        if self.verdict == "schema stricter":
            return tuple(sorted({finding.reason or UNEXPLAINED for finding in self.findings}))
        error = self.error if self.verdict == "schema laxer" else self.error_without_findings
        return () if error is None else (beyond_a_schema(error),)


def read(folder: Path) -> tuple[list[tuple[str, Config]], list[str], list[str]]:
    """Return the configs by name, and the names of files with a key that is there twice and of unreadable ones."""
    configs: list[tuple[str, Config]] = []
    twice: list[str] = []
    unreadable: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        name = path.relative_to(folder).as_posix()
        doubled: list[str] = []
        try:
            config = hjson.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_remembering(doubled))
        except ValueError:
            unreadable.append(name)
            continue
        if isinstance(config, dict):
            configs.append((name, config))
            twice += [name] if doubled else []
        else:
            unreadable.append(name)
    return configs, twice, unreadable


def _remembering(doubled: list[str]) -> Callable[[list[tuple[str, Any]]], Config]:
    def join(pairs: list[tuple[str, Any]]) -> Config:
        counts = Counter(name for name, _ in pairs)
        doubled.extend(name for name, count in counts.items() if count > 1)
        return dict(pairs)

    return join


def examine(configs: Sequence[tuple[str, Config]], twice: Iterable[str]) -> list[Row]:
    """Return a row per config."""
    doubled = frozenset(twice)
    errors = judge.judge([config for _, config in configs])
    rows = [
        Row(name, tuple(findings(config)), "ValueError: Duplicate keys" if name in doubled else error)
        for (name, config), error in zip(configs, errors, strict=True)
    ]
    rejected = [row.verdict == "both reject" for row in rows]
    repaired = [
        without(config, row.findings) for (_, config), row, asked in zip(configs, rows, rejected, strict=True) if asked
    ]
    again = iter(judge.judge(repaired))
    rows = [
        replace(row, error_without_findings=next(again)) if asked else row
        for row, asked in zip(rows, rejected, strict=True)
    ]
    return _with_reasons(rows)


def findings(config: Config) -> Iterator[Finding]:
    """Yield what the schema rejects; of alternatives that all failed, what the one that got furthest says."""
    for told in support.failures(support.validator(), config):
        depth = max(failure.path.count(".") for failure in told)
        leaves = [failure for failure in told if failure.path.count(".") == depth]
        inner = [failure for failure in leaves if failure.keyword != "anyOf"] or leaves
        for path in dict.fromkeys(failure.path for failure in inner):
            keyword = next(failure.keyword for failure in inner if failure.path == path)
            yield Finding(path, keyword, _at(config, path))


def _at(config: object, path: str) -> object:
    found = config
    for part in path.split(".") if path else ():
        found = found[int(part)] if isinstance(found, list) else found[part] if isinstance(found, dict) else None
    return found


def without(config: Config, found: Sequence[Finding]) -> Config:
    """Return a copy that lacks what was found; a batch size that has to go is replaced by one that is right."""
    done = copy.deepcopy(config)
    for finding in found:
        *holders, name = finding.path.split(".") if finding.path else ["bf16"]
        place = _at(done, ".".join(holders))
        while isinstance(place, list):
            *holders, name = holders
            place = _at(done, ".".join(holders))
        if isinstance(place, dict):
            place.pop(name, None)
    if not {BATCH, "train_micro_batch_size_per_gpu"} & done.keys() and {BATCH, "train_micro_batch_size_per_gpu"} & (
        config.keys()
    ):
        done[BATCH] = 8
        done.pop("gradient_accumulation_steps", None)
    return done


def alone(finding: Finding) -> Config:
    """Return a config that holds nothing but what was found, and a batch size."""
    config: Config = {} if finding.path.startswith("train_") else {BATCH: 8}
    place = config
    *holders, name = finding.path.split(".")
    for holder in holders:
        place = place.setdefault(holder, {})
    place[name] = finding.value
    return config


def _with_reasons(rows: Sequence[Row]) -> list[Row]:
    """Ask every finding alone, and add the reason to those that DeepSpeed takes."""
    asked = [finding for row in rows for finding in row.findings if finding.path and not _in_a_list(finding.path)]
    errors = dict(zip(map(_identity, asked), judge.judge([alone(finding) for finding in asked]), strict=True))
    return [
        replace(
            row,
            findings=tuple(
                finding if errors.get(_identity(finding)) is not None else replace(finding, reason=reason(finding))
                for finding in row.findings
            ),
        )
        for row in rows
    ]


def _in_a_list(path: str) -> bool:
    return any(part.isdigit() for part in path.split("."))


def _identity(finding: Finding) -> tuple[str, str]:
    return finding.path, json.dumps(finding.value, sort_keys=True)


def reason(finding: Finding) -> str:
    """Return why the schema rejects what DeepSpeed takes when it reads the config."""
    if finding.path == "":
        return ""
    if finding.path.startswith(("optimizer.params.", "scheduler.params.")):
        return "a parameter that fails when the optimizer or scheduler is built"
    if finding.value == judge.AUTO:
        return '"auto" that nobody fills'
    key = knowledge().key(finding.path)
    if key is None or finding.keyword in {"additionalProperties", "not"}:
        return UNEXPLAINED
    if key.is_checked:
        return "a value of another type that pydantic converts"
    return "a wrong value that DeepSpeed does not check"


def beyond_a_schema(error: str) -> str:
    """Return the rule behind an error of DeepSpeed that no schema can state."""
    return next((name for name, pattern in BEYOND_A_SCHEMA if re.search(pattern, error)), UNEXPLAINED)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the table."""
    agreed = [row for row in rows if row.verdict.startswith("both")]
    yield f"{'configs':58} {len(rows):5}"
    yield f"{'agreement':58} {len(agreed):5}  {_share(len(agreed), len(rows))}"
    for verdict in ("both accept", "both reject", "schema stricter", "schema laxer"):
        those = [row for row in rows if row.verdict == verdict]
        yield f"  {verdict:56} {len(those):5}  {_share(len(those), len(rows))}"
        if verdict == "both reject":
            clean = sum(row.error_without_findings is None for row in those)
            yield f"    {'accepted without what the schema rejects':54} {clean:5}"
        for why, count in sorted(Counter("; ".join(row.reasons) for row in those if row.reasons).items()):
            yield f"    {why:54} {count:5}"
    found = [finding for row in rows for finding in row.findings]
    yield f"{'findings of the schema':58} {len(found):5}"
    for why, count in sorted(Counter(finding.reason or "DeepSpeed refuses it alone" for finding in found).items()):
        yield f"  {why:56} {count:5}  {_share(count, len(found))}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):5.1f} %"


def unexplained(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with a disagreement that has no reason."""
    return [
        row
        for row in rows
        if UNEXPLAINED in row.reasons or any(finding.reason == UNEXPLAINED for finding in row.findings)
    ]


def main(argv: list[str] | None = None) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="name every config on which the two differ")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    args = parser.parse_args(argv)
    configs, twice, unreadable = read(args.folder)
    if not configs:
        parser.error(f"no configs under {args.folder}")
    rows = examine(configs, twice)
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return 1 if unexplained(rows) else 0
    for row in rows:
        if args.list and (row.reasons or row in unexplained(rows)):
            print(f"{row.verdict}: {row.name}\n    {row.error or row.error_without_findings or ''}")
            for finding in row.findings:
                print(f"    {finding.path} = {json.dumps(finding.value)[:80]} ({finding.keyword}) {finding.reason}")
    print("\n".join(table(rows)))
    print(f"{'files that Hjson cannot read either':58} {len(unreadable):5}")
    return 1 if unexplained(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
