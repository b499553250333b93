"""Every finding of one rule mended at once."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Document
from dsmigrate.editing.actions.draft import started
from dsmigrate.editing.actions.judging import settled
from dsmigrate.editing.actions.model import FIX_ALL, QUICK_FIX, Action, Feature, Here, Outcome
from dsmigrate.editing.actions.quick_fix import at, mended
from dsmigrate.editing.view import View
from dsmigrate.languages import say
from dsmigrate.rules import Finding, Fix

NAME = "fix-code"
EVERYTHING = "fix-all"


def _offer(view: View, here: Here) -> Iterator[Action]:
    from dsmigrate.rules.fixing import with_few_fixes  # noqa: PLC0415 - with the rules

    for code in dict.fromkeys(finding.code for _, finding in at(view, here)):
        of_code = list(with_few_fixes(view.text, (finding for finding in view.findings if finding.code == code)))
        found = list(filter(is_safe, of_code)) or [finding for finding in of_code if any(map(_does, finding.fixes))]
        if len(found) > 1:
            title = say("Fix all {found} of {code} in this file", found=len(found), code=code)
            yield Action(title, QUICK_FIX, (NAME, code), codes=tuple(map(mended, found)))


def _offer_everything(view: View, _: Here) -> Iterator[Action]:
    from dsmigrate.rules.fixing import with_few_fixes  # noqa: PLC0415 - with the rules

    found = list(filter(is_safe, with_few_fixes(view.text, view.findings)))
    if found:
        yield Action(say("Apply every safe fix in this file"), FIX_ALL, (EVERYTHING,), codes=tuple(map(mended, found)))


def _carry_out(view: View, code: str) -> Outcome:
    """Mend with the safe fixes of a rule; with its first ones where none of them is safe."""
    from dsmigrate.rules.fixing import with_few_fixes  # noqa: PLC0415 - with the rules

    of_code = with_few_fixes(view.text, (finding for finding in view.findings if finding.code == code))
    safe = any(map(is_safe, of_code))
    return _mended(view, code, unsafe=not safe)


def _carry_out_everything(view: View) -> Outcome:
    return _mended(view, None, unsafe=False)


def _mended(view: View, code: str | None, *, unsafe: bool) -> Outcome:
    from dsmigrate.checking.suppression import visible  # noqa: PLC0415 - with the rules
    from dsmigrate.rules import every_rule  # noqa: PLC0415 - imports every rule
    from dsmigrate.rules.fixing import fix_all  # noqa: PLC0415 - with the rules
    from dsmigrate.rules.run import check_with  # noqa: PLC0415 - with the rules

    rules = [rule for rule in every_rule() if code in (None, rule.code)]

    def check(document: Document) -> list[Finding]:
        if document is view.document:
            return [finding for finding in view.findings if code in (None, finding.code)]
        if view.unknown or not view.whole:
            return []  # what cannot be known was left out of the findings of the view, and would be found again here
        return visible(document, check_with(document, view.settings, rules))

    fixed = fix_all(view.document, check, unsafe=unsafe)
    if not fixed.edits:
        return Outcome(left=(say("Nothing is left to mend."),))
    draft = started(view.document, view.context.unknown).with_edits(fixed.edits)
    sound = settled(view.settings, draft)
    done = tuple(dict.fromkeys(f"{finding.code}: {fix.title}." for finding, fix in fixed.applied))
    return Outcome(sound.edits, done if sound.edits else (), sound.left)


def is_safe(finding: Finding) -> bool:
    """Return whether a finding has a fix that is safe."""
    return any(fix.safe and fix.edits for fix in finding.fixes)


def _does(fix: Fix) -> bool:
    return bool(fix.edits)


OF_ONE_RULE = Feature(NAME, QUICK_FIX, _offer, _carry_out, (str,))
OF_EVERY_RULE = Feature(EVERYTHING, FIX_ALL, _offer_everything, _carry_out_everything)
