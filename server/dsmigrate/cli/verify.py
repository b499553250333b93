"""``dsmigrate verify``: trains the original and the converted script, and says where and why they part."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import click

from dsmigrate.cli import terminal
from dsmigrate.cli.setting_options import CONVERSION, setting_options
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.options import resolve
from dsmigrate.settings.verify import setting, verify_settings_for
from dsmigrate.verify.model import Verification, VerifyError
from dsmigrate.verify.request import DEVICES, LAUNCHERS, Request
from dsmigrate.visible import visible

_FORMATS = ("text", "json", "html", "svg", "junit", "github")
_SCRIPT_ARGUMENTS = "script_arguments"
_CLEAR = "\r\x1b[K"
_LOG_SECONDS = 30.0


class _WithScriptArguments(click.Command):
    """A command that keeps what stands behind ``--`` for the scripts."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = args
        if "--" in args:
            split = args.index("--")
            own, ctx.meta[_SCRIPT_ARGUMENTS] = args[:split], tuple(args[split + 1 :])
        return super().parse_args(ctx, own)


@click.command(
    "verify",
    cls=_WithScriptArguments,
    short_help="Train the original and the converted script, and compare every step.",
)
@click.argument("scripts", nargs=-1, metavar="ORIGINAL [CONVERTED] [-- ARGS...]")
@click.option("--steps", type=int, metavar="N", help="Optimizer steps to train; default 20.")
@click.option("--processes", "-n", type=int, metavar="N", help="Processes; default 2.")
@click.option("--zero-stage", metavar="0,1,2,3", help="ZeRO stages to try, one after the other; default: the config's.")
@click.option("--converted-args", metavar="ARGS", help="Arguments of CONVERTED, where they differ from those after --.")
@click.option("--resume", is_flag=True, help="Also stop half-way at a checkpoint, start again, and compare.")
@click.option("--resume-args", metavar="ARGS", help="More arguments for the second start, such as '--resume last.pt'.")
@click.option("--device", metavar="|".join(DEVICES), help="GPUs if there are enough, else the CPU in their place.")
@click.option(
    "--launcher", metavar="|".join(LAUNCHERS), help="auto: as torchrun, or plain python for scripts that spawn."
)
@click.option("--python", metavar="PATH", help="The Python with torch and deepspeed; default: this one, else PATH's.")
@click.option("--timeout", type=float, metavar="SECONDS", help="For each run; default 600.")
@click.option("--tolerance", type=float, metavar="FACTOR", help="Multiplies every tolerance; default 1.")
@click.option("--seed", type=int, metavar="N", help="For scripts that set none themselves; default 0.")
@click.option("--here", is_flag=True, help="Run in the present folder instead of a copy of it; needs CONVERTED.")
@click.option("--keep", is_flag=True, help="Keep copies, records and output, and say where.")
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Also draw: .svg or .html."
)
@click.option("--quiet", "-q", is_flag=True, help="Nothing on stderr but errors.")
@setting_options(name for name in CONVERSION if name != "zero-stage")
def command(  # noqa: PLR0917 - click passes by name
    scripts: tuple[str, ...],
    resume: bool,  # noqa: FBT001
    here: bool,  # noqa: FBT001
    keep: bool,  # noqa: FBT001
    form: str,
    plot: Path | None,
    quiet: bool,  # noqa: FBT001
    **flags: Any,  # noqa: ANN401 - the settings, each checked against its definition
) -> int:
    """Train ORIGINAL and CONVERTED side by side; compare loss, gradient norm, learning rate and samples of each step.

    THIS RUNS YOUR CODE, in a copy of the present folder. Without CONVERTED, ORIGINAL is converted first, with the
    settings of `dsmigrate migrate` below (--offload and on) and those of the project. Both get the
    same seeds, data and arguments (those after --); neither is edited: a harness watches them from outside. Without
    enough GPUs they train on the CPU, which is made to look like CUDA to them.

    Where they part, the original is trained once more: what it does not repeat is noise.

    Exit codes: 0 they agree, 1 they part or the conversion fails, 2 it could not be found out.
    """
    from dsmigrate.verify.job import verify  # noqa: PLC0415 - what only a run needs

    given = {name.replace("_", "-"): value for name, value in flags.items() if value is not None}
    try:
        _check_plot(plot)
        request = _request(
            scripts,
            click.get_current_context().meta.get(_SCRIPT_ARGUMENTS, ()),
            given,
            resume=resume,
            here=here,
            keep=keep,
        )
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
    say = _silent if quiet else _say
    try:
        say(f"this runs your code: {_training(request)}")
        verification = verify(request, say, _silent_progress if quiet else Progress(sys.stderr, say))
        if not quiet and sys.stderr.isatty():
            sys.stderr.write(_CLEAR)
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
    except VerifyError as error:
        _print_unmade(request, str(error), form)
        raise click.ClickException(str(error)) from None
    _print(verification, form)
    if plot is not None:
        _draw(verification, plot)
        say(f"wrote {plot}")
    return 0 if verification.agrees else 2 if verification.is_open else 1


def _request(
    scripts: tuple[str, ...],
    arguments: tuple[str, ...],
    flags: dict[str, Any],
    *,
    resume: bool,
    here: bool,
    keep: bool,
) -> Request:
    if not scripts or len(scripts) > 2:
        raise click.UsageError(
            f"one script, or two, are trained, and {len(scripts)} are given; their arguments follow --"
        )
    original = Path(scripts[0])
    converted = Path(scripts[1]) if len(scripts) > 1 else None
    fields = verify_settings_for(original.parent)
    conversion = {name: value for name, value in flags.items() if name in CONVERSION and name != "zero-stage"}
    if conversion and converted is not None:
        raise click.UsageError(f"--{next(iter(conversion))} is for the conversion, and CONVERTED is one: leave it out")
    for name, value in flags.items():
        if name not in conversion:
            fields |= setting(name, value)
    for stage in fields.get("stages", ()) or (None,):
        resolve(original.parent, {**conversion, **({} if stage is None else {"zero-stage": stage})})
    if not resume and "resume-args" not in flags:
        fields.pop("resume", None)
    else:
        fields.setdefault("resume", ())
    return Request(original, converted, arguments, here=here, keep=keep, conversion=conversion, **fields)


def _training(request: Request) -> str:
    scripts = f"{request.original} and {request.converted or 'its conversion'}"
    where = "in the present folder" if request.here else "in copies of the present folder"
    return f"{scripts} are trained for {request.steps} optimizer steps by {request.processes} processes, {where}"


def _say(line: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(_CLEAR)
    terminal.tell(line)


def _silent(_line: str) -> None:
    return None


def _silent_progress(_name: str, _taken: int, _of: int) -> None:
    return None


class Progress:
    """Says how far a run is and how long it still takes: in one line of a terminal, or now and then in a log."""

    def __init__(self, stream: TextIO, say: Callable[[str], None]) -> None:
        self._stream = stream
        self._say = say
        self._name = ""
        self._begun: tuple[float, int] | None = None
        self._said = 0.0

    def __call__(self, name: str, taken: int, of: int) -> None:
        """Hear that the run ``name`` has taken so many steps ``of`` so many."""
        now = time.monotonic()
        if name != self._name:
            self._name, self._begun, self._said = name, None, now
        if taken and self._begun is None:
            self._begun = (now, taken)
        line = f"  {name}: {_how_far(taken, of)}{self._left(now, taken, of)}"
        if self._stream.isatty():
            self._stream.write(_CLEAR + line)
            self._stream.flush()
        elif now - self._said > _LOG_SECONDS:
            self._said = now
            self._say(line)

    def _left(self, now: float, taken: int, of: int) -> str:
        if self._begun is None or taken <= self._begun[1] or taken >= of:
            return ""
        begun, first = self._begun
        return f", about {(now - begun) / (taken - first) * (of - taken):.0f} s left"


def _how_far(taken: int, of: int) -> str:
    return f"step {taken} of {of}" if taken else "before its first step"


def _print(verification: Verification, form: str) -> None:
    if form == "text":
        from dsmigrate.verify.formats import text  # noqa: PLC0415

        terminal.show_lines(text.render(verification))
        return
    from dsmigrate.verify.formats import github, html, json, junit  # noqa: PLC0415

    makers = {
        "json": json.render, "html": html.render, "svg": html.svg, "junit": junit.render, "github": github.render
    }  # fmt: skip
    made = makers[form](verification)
    terminal.write(made) if form == "json" else terminal.write_visible(made)


def _print_unmade(request: Request, reason: str, form: str) -> None:
    """Write the report of a verification that could not be made, where a CI system reads it."""
    from dsmigrate.verify.formats import github, junit  # noqa: PLC0415

    makers = {"junit": junit.unmade, "github": github.unmade}
    if form in makers:
        terminal.write_visible(makers[form](request, reason))


def _check_plot(plot: Path | None) -> None:
    if plot is None:
        return
    if plot.suffix not in {".svg", ".html"}:
        raise click.UsageError(f"--plot {plot}: the ending says the format: .svg or .html")
    if not plot.parent.is_dir():
        raise click.UsageError(f"--plot {plot}: there is no folder {plot.parent}")


def _draw(verification: Verification, plot: Path) -> None:
    from dsmigrate.verify.formats import html  # noqa: PLC0415

    made = html.svg(verification) if plot.suffix == ".svg" else html.render(verification)
    plot.write_bytes(visible(made).encode())
