"""A config as one release and one reader see it: what every editor feature starts from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from dsmigrate.document import Document
from dsmigrate.knowledge import Consumer, Knowledge, knowledge
from dsmigrate.rules import Finding, Settings
from dsmigrate.rules.context import Context


class View:
    """A document with the release, consumer and facts that it is looked at with; never changes.

    Whatever is derived is made when first asked for and kept, so that hover, completion and hints of one text share it.
    ``why_version`` and ``why_consumer`` end a sentence about a guess ("pinned in requirements.txt"), "" when they were
    asked for. ``folder`` is where the file lies, None for text from nowhere.
    """

    def __init__(
        self,
        document: Document,
        settings: Settings | None = None,
        *,
        why_version: str = "",
        why_consumer: str = "",
        folder: Path | None = None,
        unknown: Sequence[tuple[int, int]] = (),
        whole: bool = True,
        shows_findings: bool = True,
        overlaid: bool = False,
    ) -> None:
        """Look at ``document`` with ``settings``, by default plain DeepSpeed of the newest release.

        ``unknown`` holds start and end of values that stand for expressions of a script; ``whole`` is False where keys
        may be there that nobody sees; ``shows_findings`` is whether the client shows findings beside a hover.
        ``overlaid`` is whether the text is in another form, whose places need not lie in each other as the keys do.
        """
        self.document = document
        self.settings = settings or Settings()
        self.why_version = why_version
        self.why_consumer = why_consumer
        self.folder = folder
        self.unknown = tuple(unknown)
        self.whole = whole
        self.shows_findings = shows_findings
        self.overlaid = overlaid

    @property
    def text(self) -> str:
        """The text of the file."""
        return self.document.text

    @property
    def consumer(self) -> Consumer:
        """Who hands the config to DeepSpeed."""
        return self.settings.consumer

    @cached_property
    def known(self) -> Knowledge:
        """The keys of the release."""
        return knowledge(self.settings.version)

    @cached_property
    def context(self) -> Context:
        """Entries and values as the rules see them: ``value(path)`` with defaults, ``stage``, ``device`` and more."""
        return Context(
            self.document, self.known, consumer=self.consumer, facts=self.settings.facts, unknown=self._hidden
        )

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all rules that the settings take, without those that the file asks to leave out."""
        from dsmigrate.checking.suppression import visible  # noqa: PLC0415 - off the path of hover and completion
        from dsmigrate.rules.run import check_in  # noqa: PLC0415 - imports every rule

        found = check_in(self.context, self.settings)
        if self.unknown or not self.whole:
            found = [finding for finding in found if self._is_certain(finding)]
        return tuple(visible(self.document, found))

    @property
    def _hidden(self) -> frozenset[int]:
        return frozenset(start for start, _ in self.unknown)

    def _is_certain(self, finding: Finding) -> bool:
        """Return whether a finding rests on nothing that is not known: no expression, no key that may be there."""
        root = self.document.root
        if not self.whole and root is not None and finding.start == root.start:
            return False
        places = [(finding.start, finding.end), *((related.start, related.end) for related in finding.related)]
        return not any(start < end_ and start_ < end for start, end in places for start_, end_ in self.unknown)
