"""A training script turned into a DeepSpeed script, as edits of its text and of the modules it trains with."""

from __future__ import annotations

import difflib
import io
import re
import shlex
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dsmigrate.document import TextEdit
from dsmigrate.editing.python.tokens import tokens
from dsmigrate.files.paths import resolved
from dsmigrate.languages import say

if TYPE_CHECKING:
    from dsmigrate.codemod.model import Change, FileResult
    from dsmigrate.migration.job import Outcome

_IMPORTED = re.compile(r"\bDistributedDataParallel\b(?:\s+as\s+(\w+))?")
_WRAP = "DistributedDataParallel"


@dataclass(frozen=True, slots=True)
class AnnotatedEdit:
    """An edit with the decisions behind it: a code and a sentence each, "" where it only follows from the others."""

    edit: TextEdit
    label: str
    description: str


@dataclass(frozen=True, slots=True)
class ConvertedModule:
    """A file that is changed together with the script or not at all, as ``Converted`` has the script itself.

    ``is_new``: it is not there yet, as ``ds_compat.py`` in a project that is converted for the first time.
    """

    path: Path
    before: str
    after: str
    edits: tuple[AnnotatedEdit, ...]
    result: FileResult
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Converted:
    """What a conversion comes to.

    ``status`` is that of the migration of all its files; ``edits`` make the script, ``config_path`` and ``config_text``
    the config beside it, None where there is none. ``reasons`` say what is refused or left for the person, with lines
    counted from 1, and ``launch`` how to start the script from its folder. ``after`` is the text of the converted
    script, and ``result`` all that the migration decided about it; both are None where there is none. ``modules`` are
    the files of the project that change with it.
    """

    status: str
    edits: tuple[AnnotatedEdit, ...]
    config_path: Path | None
    config_text: str | None
    reasons: tuple[str, ...]
    launch: tuple[str, ...]
    after: str | None = None
    result: FileResult | None = None
    modules: tuple[ConvertedModule, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether any file would be edited."""
        return bool(self.edits or self.modules)


def wraps(text: str) -> tuple[tuple[int, int], ...]:
    """Return start and end of each name that wraps a model in DDP, without running or parsing the script."""
    names = {_WRAP, *(found[1] for found in _IMPORTED.finditer(text) if found[1])}
    if _WRAP not in text:
        return ()
    found = [token for token in tokens(text) if token.kind not in {"comment", "newline"}]
    return tuple(
        (token.start, token.end)
        for index, token in enumerate(found[:-1])
        if token.kind == "name" and token.text in names and found[index + 1].text == "("
        if index == 0 or found[index - 1].text not in {"def", "class"}
    )


def convert(text: str, path: Path, unsaved: Mapping[Path, str] | None = None) -> Converted:
    """Return the conversion of a script at ``path`` and of its modules, with the settings that hold there.

    ``unsaved`` has the texts of other files that differ from the disk. Raises SettingsError for settings that
    contradict each other. Takes about as long as ``dsmigrate FILE``.
    """
    from dsmigrate.migration.configs import config_path, render, with_config  # noqa: PLC0415 - the codemod is not in memory before
    from dsmigrate.migration.job import Job, run  # noqa: PLC0415
    from dsmigrate.migration.sets import project_root, reconcile  # noqa: PLC0415
    from dsmigrate.settings.options import resolve  # noqa: PLC0415

    options = resolve(path.parent, {}).options
    root = project_root(path)
    texts = {resolved(other): _bytes(shown) for other, shown in (unsaved or {}).items()}
    (outcome,) = reconcile([run(Job(path, path.parent, options, _bytes(text), root, texts))])
    result = _from_its_folder(outcome.result, path, root)
    new = None if result.new_source is None else result.new_source.decode(outcome.encoding)
    maker = with_config(outcome)
    config = None if maker is None or maker.result.config is None else render(maker.result.config)
    modules = tuple(_module(module, root) for module in outcome.modules if module.changes)
    reasons = _reasons(result)
    for module in modules:
        reasons += _reasons(module.result, module.path.name)
    return Converted(
        status=_status([result, *(module.result for module in modules)]),
        edits=() if new is None else tuple(_annotated(text, new, result)),
        config_path=None if maker is None else config_path(maker.job),
        config_text=config,
        reasons=tuple(reasons),
        launch=result.launch,
        after=new,
        result=result,
        modules=modules,
    )


def _module(outcome: Outcome, root: Path) -> ConvertedModule:
    path, encoding = outcome.job.path, outcome.encoding
    result = replace(_from_its_folder(outcome.result, path, root), path=path.relative_to(root).as_posix())
    before, after = outcome.source.decode(encoding), (result.new_source or b"").decode(encoding)
    edits = tuple(_annotated(before, after, result))
    return ConvertedModule(path, before, after, edits, result, outcome.is_new)


def _status(results: list[FileResult]) -> str:
    """The status of the whole: that of the script, with what is left to do in any of its modules."""
    own = results[0].status.value
    left = any(result.status.value == "converted_with_todos" for result in results)
    changed = any(result.new_source is not None for result in results)
    return "converted_with_todos" if left else "converted" if changed else own


def _from_its_folder(result: FileResult, path: Path, root: Path) -> FileResult:
    """Return a result whose commands name the script as its own folder knows it, and whose words name no root."""
    long, short = shlex.quote(path.as_posix()), shlex.quote(path.name)
    above = f"{root.as_posix()}/"
    return replace(
        result,
        launch=tuple(command.replace(long, short) for command in result.launch),
        changes=tuple(replace(change, message=change.message.replace(above, "")) for change in result.changes),
    )


def _bytes(text: str) -> bytes:
    return text.encode(_encoding(text), "replace")


def _encoding(text: str) -> str:
    head = "\n".join(text.split("\n", 2)[:2]).encode("ascii", "replace")
    try:
        return tokenize.detect_encoding(io.BytesIO(head).readline)[0]
    except SyntaxError:
        return "utf-8"


def _reasons(result: FileResult, name: str = "") -> list[str]:
    return [_reason(change, name) for change in result.changes if change.kind.value in {"refused", "todo"}]


def _reason(change: Change, name: str) -> str:
    said = say("line {line}: {message} ({code})", line=change.line, message=change.message, code=change.code)
    return f"{name}, {said}" if name else said


def _annotated(old: str, new: str, result: FileResult) -> list[AnnotatedEdit]:
    """Return the edits that make ``new`` of ``old``, whole lines each, with the decisions about those lines."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    offsets = [0]
    for line in before:
        offsets.append(offsets[-1] + len(line))
    found: list[AnnotatedEdit] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        decisions = [change for change in result.changes if change.line <= i2 and change.end_line > i1]
        label = ", ".join(dict.fromkeys(change.code for change in decisions))
        said = "; ".join(dict.fromkeys(change.message for change in decisions))
        edit = TextEdit(offsets[i1], offsets[i2], "".join(after[j1:j2]))
        found.append(AnnotatedEdit(edit, label or "MG", said or say("follows from the other changes")))
    return found
