"""For GitHub Actions: a workflow command for each stage, which becomes an annotation of the script."""

from __future__ import annotations

from dsmigrate.checking.formats.github import command
from dsmigrate.verify.formats import words
from dsmigrate.verify.model import Cause, Verdict, Verification
from dsmigrate.verify.request import Request


def render(verification: Verification) -> str:
    """Return a line for each verdict: an error where it parts, fails, or could not be found out."""
    return "".join(f"{_line(verification, verdict)}\n" for verdict in verification.verdicts)


def unmade(request: Request, reason: str) -> str:
    """Return an error for a verification that could not be made."""
    title = f"dsmigrate verify: {words.pair(request)}"
    return command("error", reason, {"file": request.original.as_posix(), "title": title}) + "\n"


def _line(verification: Verification, verdict: Verdict) -> str:
    kind = "notice" if verdict.agrees else "error"
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
