"""The command group: ``migrate`` is the default command, the others are loaded when they are called."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import click

from dsmigrate import __version__
from dsmigrate.cli import streams, terminal
from dsmigrate.languages import say
from dsmigrate.visible import visible_line

DEFAULT = "migrate"
COMMANDS = {
    "migrate": "Convert DDP training scripts to the DeepSpeed engine (the default command).",
    "check": "Say what is wrong, ignored, overridden or unwise in DeepSpeed configs.",
    "diff": "Say what a change of a DeepSpeed config does.",
    "verify": "Train the original and the converted script side by side, and compare every step.",
    "convert": "Write DeepSpeed settings in another form: Accelerate, plugin, dictionary, Trainer arguments, or back.",
    "memory": "Say what a config, or every ZeRO stage, takes of GPU and host for a model.",
    "recommend": "Say which ZeRO stage and offload fit a model and its GPUs, and write the config.",
    "recover": "Finish or undo a --write that was killed.",
    "ci": "Check and compare the configs that a pull request changes.",
    "server": "Start the language server, for editors.",
    "mcp": "Start an MCP server, for agents.",
    "schema": "Print the JSON Schema of ds_config.json for a DeepSpeed release.",
    "explain": "Print what a config key, an optimizer or scheduler type, or a code stands for.",
}
INTERRUPTED = 130
_TRACEBACK = "DSMIGRATE_TRACEBACK"
_ISSUES = "https://github.com/dsmigrate/dsmigrate/issues"
_HELP = """Move PyTorch DDP training to DeepSpeed.

`dsmigrate train.py` is short for `dsmigrate migrate train.py`: it prints a patch and a report and writes nothing.

\b
  dsmigrate train.py                 print the patch and the report
  dsmigrate train.py --write         rewrite the script, write ds_config.json beside it
  dsmigrate train.py --output DIR    write the results to DIR, leave the script alone
  dsmigrate verify train.py          train it and its conversion (this runs your code), compare every step
  dsmigrate explain zero_optimization.stage
                                     say what a key of ds_config.json does, its default, history and traps
  dsmigrate explain MG101            say what a code of the report means

`dsmigrate migrate --help` lists the options.

Exit codes: 0 nothing left to do, 1 something is left for you, 2 the work could not be done.
"""


class _Commands(click.Group):
    """A group that imports a command when it is called, and takes anything else as arguments of the default one."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"dsmigrate.cli.{cmd_name}").command
        assert isinstance(command, click.Command)  # noqa: S101 - tells mypy what the modules hold
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"--help", "-h", "--version", "-V"}
        if args and args[0] not in COMMANDS and args[0] not in own:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


@click.command(cls=_Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="dsmigrate", message="%(prog)s %(version)s")
def application() -> None:
    """Hold the commands; what it prints as help is ``_HELP``."""


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code; an interrupt gives 130, as shells expect."""
    streams.reopen_closed()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup ignores it
            signal.signal(signal.SIGHUP, _terminate)
    try:
        code = _run(arguments)
    except OSError as error:
        if error.filename is None:  # a stream; what opens and writes files has messages of its own
            if streams.flushed():
                streams.give_up(sys.stdout, error)
            return 2
        code = _internal(error)
    except Exception as error:  # noqa: BLE001 - a traceback says nothing to who uses it
        code = _internal(error)
    return code if streams.flushed() else 2


def _run(arguments: Sequence[str]) -> int:
    try:
        outcome = application.main(list(arguments), prog_name="dsmigrate", standalone_mode=False)
    except click.exceptions.Exit as asked:
        return asked.exit_code
    except click.Abort:
        terminal.tell("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        terminal.tell(shown.getvalue().rstrip("\n"))
        return 2
    return outcome if isinstance(outcome, int) else 0


def _internal(error: Exception) -> int:
    """Say what to do about an error of our own, and where it was; the exit code is 2."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}:{place.lineno}"
    said = visible_line(str(error))[:200]
    with contextlib.suppress(OSError):
        terminal.tell(
            say("internal error: {kind} in {where}: {said}", kind=type(error).__name__, where=where, said=said)
            + "\n"
            + say(
                "This is a bug of dsmigrate {version}; {variable}=1 prints the traceback, {url} takes the report",
                version=__version__,
                variable=_TRACEBACK,
                url=_ISSUES,
            )
        )
        if os.environ.get(_TRACEBACK):
            terminal.tell("".join(traceback.format_exception(error)))
    return 2


def command_like(word: str) -> str:
    """Return a hint where ``word``, taken as a file, looks like a misspelt command; else ""."""
    close = difflib.get_close_matches(word, COMMANDS, n=1, cutoff=0.7)
    return f"; did you mean the command {close[0]}?" if close else ""


def _terminate(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
