"""``dsmigrate convert``: the same settings as ds_config.json, in Accelerate, in a script, for the Trainer."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from dsmigrate.checking.arguments import arguments_for
from dsmigrate.cli import terminal
from dsmigrate.cli.language import speak
from dsmigrate.convert.arguments import Arguments, all_say, of_json, of_text, read_arguments
from dsmigrate.convert.job import CARRYING, DEFAULT_NAME, Converted, Request, convert, text_of
from dsmigrate.convert.model import ConvertError, Form, Target
from dsmigrate.convert.recognise import form_of
from dsmigrate.files.reading import STDIN, read, read_stdin
from dsmigrate.files.text import SourceError, decode, encode
from dsmigrate.files.writing import Write, WriteError, write_all
from dsmigrate.languages import say
from dsmigrate.settings.check import CheckSettings, check_settings_for, with_setting
from dsmigrate.settings.errors import SettingsError

STDIN_NAME = "<stdin>"
_FORMS = [form.value for form in Form]
_NAMES = {Form.DEEPSPEED: DEFAULT_NAME, Form.ACCELERATE: "accelerate_config.yaml", Form.TRANSFORMERS: DEFAULT_NAME}
"""What --write calls a target beside the source."""


_HELP = """Write the DeepSpeed settings of FILE in another form: to standard output, or into a file that is edited.

\b
  deepspeed      ds_config.json
  accelerate     the YAML of accelerate launch (an FSDP file is read as ZeRO-3)
  plugin         DeepSpeedPlugin(...) in a script
  dict           a dictionary in a script
  transformers   TrainingArguments(...) with a config in which they fill "auto"

What cannot be carried over is said on standard error, with its key. Exit codes: 0 everything is carried over, 1
something is not, or the result would be refused, 2 nothing could be converted.
"""


@click.command("convert", help=_HELP, short_help="Write DeepSpeed settings in another form.")
@click.argument("source", metavar="FILE|-")
@click.option("--to", "target", type=click.Choice(_FORMS), required=True, help="Form to write.")
@click.option("--from", "form", type=click.Choice(_FORMS), help="Form of FILE; recognised where it is not given.")
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write there; an existing file is edited."
)
@click.option("--write", is_flag=True, help="Write ds_config.json or accelerate_config.yaml beside FILE.")
@click.option(
    "--set", "given", multiple=True, metavar="KEY=VALUE", help="Value of a key, or of an argument; JSON or text."
)
@click.option(
    "--arguments",
    metavar="FILE|JSON|FLAGS",
    help='Training script, launch script, or the arguments themselves, that fill "auto".',
)
@click.option(
    "--carry", type=click.Choice(CARRYING), default="auto", show_default=True, help="How Accelerate gets a config."
)
@click.option(
    "--config-name", metavar="PATH", help=f"Config that the YAML names; default: FILE if it is one, or {DEFAULT_NAME}."
)
@click.option("--line", type=int, metavar="N", help="Line of the place in a script that has several.")
@click.option("--consumer", metavar="NAME", help="Who reads the result: deepspeed, transformers, accelerate.")
@click.option(
    "--deepspeed-version", "--target-version", "deepspeed_version", metavar="VERSION", help="DeepSpeed release."
)
@click.option("--world-size", type=int, metavar="N", help="Number of processes.")
@click.option("--lang", metavar="TAG", help="Language of messages: en or zh-CN.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(  # noqa: PLR0917 - click passes by name
    source: str,
    target: str,
    form: str | None,
    output: Path | None,
    write: bool,  # noqa: FBT001
    given: tuple[str, ...],
    arguments: str | None,
    carry: str,
    config_name: str | None,
    line: int | None,
    lang: str | None,
    style: str,
    **flags: Any,  # noqa: ANN401 - the settings, each checked against its definition
) -> int:
    """Convert, and return the exit code; what it prints as help is ``_HELP``."""
    try:
        speak(lang)
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
    to = Form(target)
    if write and output is not None:
        raise click.UsageError(say("--write chooses the name itself: leave it or --output out"))
    path = output if output is not None else _beside(source, to) if write else None
    name, data, folder = _source(source)
    try:
        source_form = Form(form) if form else form_of(name, text_of(name, data))
        separate = to is Form.TRANSFORMERS and path is not None and path.suffix.lower() != ".py"
        request = Request(
            name=name,
            data=data,
            target=to,
            source=source_form,
            folder=folder,
            settings=_settings(folder, flags),
            given=_given(given),
            arguments=_around(Path(name)) if arguments is None and not source_form.is_script else _arguments(arguments),
            into=Target(
                there=None if separate else _there(path),
                line=None if source_form.is_script else line,
                carrying="file" if separate else carry,
                name=path.as_posix() if separate and path is not None else config_name or _named(source, source_form),
            ),
            line=line,
        )
        converted = convert(request)
        texts = _texts(converted, path, separate=separate)
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
    except ConvertError as error:
        raise click.ClickException(f"{name}{error.where}: {error.message}") from None
    if path is not None:
        _save(path, texts[0])
    _show(converted, request, path, style, texts[1])
    return 0 if converted.is_complete else 1


def _source(source: str) -> tuple[str, bytes, Path]:
    try:
        if source == STDIN:
            return STDIN_NAME, read_stdin(), Path()
        return source, read(Path(source)), Path(source).parent
    except SourceError as error:
        raise click.ClickException(f"{source}: {error.message}") from None


def _named(source: str, form: Form) -> str:
    """Return the config file that a target names: the source, if it is a file with a config."""
    return Path(source).as_posix() if form is Form.DEEPSPEED and source != STDIN else DEFAULT_NAME


def _beside(source: str, target: Form) -> Path:
    if target not in _NAMES:
        message = say("--write knows no name for the form {form}: give --output FILE", form=target.value)
        raise click.UsageError(message)
    return (Path() if source == STDIN else Path(source).parent) / _NAMES[target]


def _settings(folder: Path, flags: dict[str, Any]) -> CheckSettings:
    settings = check_settings_for(folder)
    for flag, value in flags.items():
        if value is not None:
            settings = with_setting(settings, flag.replace("_", "-"), value)
    return settings


def _given(given: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry in given:
        key, equals, value = entry.partition("=")
        if not equals or not key:
            raise click.UsageError(say("--set {entry} is not KEY=VALUE", entry=repr(entry)))
        try:
            found[key] = of_json(value)
        except ValueError:
            found[key] = value
    return found


def _around(source: Path) -> Arguments:
    """Return what launch lines, files of arguments and calls around a file give it besides, if they agree."""
    trainings, trainer = arguments_for(source) if source.is_file() else ((), "")
    return all_say(trainings, of_trainer=bool(trainer)) if trainings else Arguments({})


def _arguments(asked: str | None) -> Arguments:
    if asked is None:
        return Arguments({})
    try:
        if asked.lstrip().startswith(("{", "-")):
            return of_text(asked)
        return read_arguments(asked, text_of(asked, read(Path(asked))))
    except SourceError as error:
        raise click.ClickException(f"{asked}: {error.message}") from None
    except ConvertError as error:
        raise click.ClickException(f"{asked}{error.where}: {error.message}") from None


def _there(path: Path | None) -> str | None:
    """Return the text of a target that exists; it is edited."""
    if path is None or not path.exists():
        return None
    try:
        return text_of(path.name, read(path))
    except SourceError as error:
        raise click.ClickException(f"{path}: {error.message}") from None
    except ConvertError as error:
        raise click.ClickException(f"{path}{error.where}: {error.message}") from None


def _texts(converted: Converted, path: Path | None, *, separate: bool) -> tuple[str, str]:
    """Return what goes to the file, and what to standard output."""
    if not separate or path is None:
        return converted.written.text, "" if path is not None else converted.written.text
    from dsmigrate.convert.forms.deepspeed import write_deepspeed  # noqa: PLC0415 - for two targets in one

    return write_deepspeed(converted.config, _there(path)), converted.written.text


def _save(path: Path, text: str) -> None:
    try:
        old = read(path) if path.exists() else None
        data = text.encode()
        if old is not None and path.suffix == ".py":
            data = encode(text, decode(old))
        write_all([Write(path, data, old, path.parent)])
    except (WriteError, SourceError) as error:
        raise click.ClickException(say("{error}. Nothing was written", error=error)) from None
    except OSError as error:
        message = say("{path}: cannot be written: {error}", path=path, error=error.strerror or error)
        raise click.ClickException(message) from None


def _show(converted: Converted, request: Request, path: Path | None, style: str, text: str) -> None:
    from dsmigrate.convert.formats import json as json_format  # noqa: PLC0415 - one of them is used
    from dsmigrate.convert.formats.text import talk  # noqa: PLC0415

    if request.arguments.place:
        terminal.tell(say('arguments that fill "auto": {place}', place=request.arguments.place))
    if style == "json":
        terminal.write(json_format.render(converted, request, None if path is None else str(path)))
        return
    terminal.write(text)
    for spoken in talk(converted, _shortest(request.name)):
        terminal.tell(spoken)
    if path is not None:
        terminal.tell(say("wrote {path}", path=path))


def _shortest(name: str) -> str:
    """Return an absolute path from the working directory where that is shorter: each note has it in front."""
    if not Path(name).is_absolute():
        return name
    try:
        return min(name, os.path.relpath(name), key=len)
    except ValueError:  # on another drive
        return name
