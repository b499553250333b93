"""From the records of all ranks to one run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dsmigrate.verify.model import Input, Outcome, Run, Step, Weights

Record = Mapping[str, Any]


def ended(trace: Path, processes: int) -> bool:
    """Return whether every rank has written its last record."""
    return all((trace / f"end.{rank}").exists() for rank in range(processes))


def read(name: str, trace: Path, outcome: Outcome) -> Run:
    """Read what the ranks have recorded in the folder ``trace``; lines that were cut off are left out."""
    ranks = [list(_records(file)) for file in sorted(trace.glob("rank*.jsonl"), key=_rank)]
    begins = [record for rank in ranks for record in rank if record["event"] == "begin"]
    steps = [[record for record in rank if record["event"] == "step"] for rank in ranks]
    ends = [record for rank in ranks for record in rank if record["event"] == "end"]
    crashes = [record for rank in ranks for record in rank if record["event"] == "crash"]
    saves = [record for rank in ranks for record in rank if record["event"] == "save"]
    setting = {key: item for key, item in (begins[0] if begins else {}).items() if key not in {"event", "weights"}}
    return Run(
        name=name,
        outcome=outcome,
        setting=setting,
        steps=tuple(_step(list(rows)) for rows in zip(*steps, strict=False)),
        start=Weights(begins[0].get("weights", {})) if begins else Weights(),
        end=tuple(Weights(record.get("weights", {})) for record in ends),
        saves=tuple(sorted({int(record["steps"]) for record in saves})),
        crashes=tuple(sorted(crashes, key=lambda record: number(record.get("time", 0.0)))),
        problems=tuple(dict.fromkeys(_problem(r) for rank in ranks for r in rank if r["event"] == "harness")),
        full=next((str(record["path"]) for rank in ranks for record in rank if record["event"] == "full"), ""),
        taken=tuple(len(rows) for rows in steps),
        saved=tuple(sorted({str(record["path"]) for record in saves if record.get("path")})),
        reads=tuple(sorted({line for file in trace.glob("reads-*.txt") for line in _lines(file)})),
    )


def progress(trace: Path) -> tuple[int, int]:
    """Return how many steps the slowest rank has recorded, and how many bytes all of them have."""
    texts = [file.read_bytes() for file in trace.glob("rank*.jsonl")]
    return min((text.count(b'{"event": "step"') for text in texts), default=0), sum(map(len, texts))


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()


def number(value: object) -> float:
    """Return a recorded number; JSON has no word for those that are not finite."""
    return float(value) if isinstance(value, (int, float, str)) else math.nan


def _rank(file: Path) -> int:
    return int("".join(filter(str.isdigit, file.stem)) or 0)


def _records(file: Path) -> Iterable[Record]:
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and "event" in found:
            yield found


def _problem(record: Record) -> str:
    lines = str(record.get("error", "")).strip().splitlines()
    return f"{record.get('where')}: {lines[-1] if lines else 'failed'}"


def _step(rows: Sequence[Record]) -> Step:
    first = rows[0]
    sums = [math.fsum(number(loss) for loss in row["losses"]) for row in rows]
    norms = tuple(number(row["norm"]) for row in rows if row.get("norm") is not None)
    return Step(
        index=int(first["step"]),
        loss=sum(sums) / len(sums) if sums else math.nan,
        losses=tuple(sums),
        first=_mean(row["losses"][0] for row in rows if row["losses"]),
        backwards=len(first["losses"]),
        samples=sum(sum(row["batches"]) for row in rows),
        data=tuple(tuple(_input(item) for item in row["data"]) for row in rows),
        norm=sum(norms) / len(norms) if norms else None,
        norms=norms,
        applied=_mean(row.get("applied") for row in rows),
        limit=None if first.get("limit") is None else number(first["limit"]),
        groups=tuple(first["groups"]),
        optimizer=str(first["optimizer"]),
        train=tuple(first["train"]),
        autocast=tuple(first["autocast"]),
        random=first.get("random"),
        carry=_mean(row.get("carry") for row in rows),
        scale=None if first.get("scale") is None else number(first["scale"]),
        schedulers=int(first["schedulers"]),
        skipped=bool(first["skipped"]),
        outside=int(first["outside"]),
        idle=tuple(frozenset(row.get("idle", ())) for row in rows),
        seconds=max(number(row["seconds"]) for row in rows),
        overhead=max(number(row["overhead"]) for row in rows),
    )


def _input(found: Sequence[Any]) -> Input:
    exact, product, norm, kind = found
    return Input(int(exact), number(product), number(norm), str(kind))


def _mean(found: Iterable[object]) -> float | None:
    numbers = [number(one) for one in found if one is not None]
    return sum(numbers) / len(numbers) if numbers else None
