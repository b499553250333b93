"""For GitHub Actions: a workflow command for each stage, which becomes an annotation of the script."""

from __future__ import annotations

from dsmigrate.checking.formats.github import command
from dsmigrate.verify.formats import words
from dsmigrate.verify.model import Cause, Verdict, Verification


def render(verification: Verification) -> str:
    """Return a line for each verdict: an error where it parts or fails, a warning where it could not be found out."""
    return "".join(f"{_line(verification, verdict)}\n" for verdict in verification.verdicts)


def _line(verification: Verification, verdict: Verdict) -> str:
    kind = "notice" if verdict.agrees else "warning" if verdict.is_open else "error"
    comparison = verdict.comparison
    told = [words.verdict_line(verdict), *map(words.difference, comparison.differences[:1]), *words.noise(comparison)]
    causes = comparison.causes or _of_resuming(verdict)
    for said, cause in zip(words.ranked(causes), causes, strict=True):
        told += [f"{said}: {cause.title} [{cause.id}]", f"  {cause.why}", f"  → {cause.advice}"]
    file = verification.converted or verification.original
    properties = {"file": file.as_posix(), "title": f"dsmigrate verify: {words.title(verification, verdict)}"}
    return command(kind, "\n".join(told), properties)


def _of_resuming(verdict: Verdict) -> tuple[Cause, ...]:
    resumed = verdict.resumed
    return () if resumed is None or resumed.agrees or resumed.comparison is None else resumed.comparison.causes
