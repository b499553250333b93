"""``dsmigrate memory``: what a config, or every ZeRO stage, takes for a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dsmigrate.checking.evidence import consumer_for, release_for
from dsmigrate.cli import terminal
from dsmigrate.cli.planning_options import machine_of, model_of, planning_options, work_of
from dsmigrate.document import Document, DocumentError, parse_bytes
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.editing.view import View
from dsmigrate.files.reading import STDIN, read, read_stdin
from dsmigrate.files.text import SourceError
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.memory.activations import Checkpointing, Workload
from dsmigrate.memory.estimate import Estimate, Machine, estimate
from dsmigrate.memory.shape import Described
from dsmigrate.memory.variants import HALVES, compared
from dsmigrate.rules import Effect, Facts, Settings, Severity
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.releases import check_release

_KEPT = [one.value for one in Checkpointing]


@click.command("memory", short_help="Say what a config, or every ZeRO stage, takes of GPU and host for a model.")
@click.argument("config", required=False, metavar="[CONFIG|-]")
@planning_options
@click.option("--gpu-memory", type=click.FloatRange(min=0, min_open=True), metavar="GIB", help="Memory of one GPU.")
@click.option("--activation-checkpointing", type=click.Choice(_KEPT), default="none", show_default=True)
@click.option("--precision", type=click.Choice(HALVES), default="bf16", show_default=True, help="Without a CONFIG.")
@click.option(
    "--accumulation",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Micro-batches of a step, without a CONFIG.",
)
@click.option("--consumer", type=click.Choice([one.value for one in Consumer]), help="Who reads the CONFIG.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the bars to FILE.svg or FILE.html.")  # fmt: skip
def command(
    config: str | None,
    gpu_memory: float | None,
    activation_checkpointing: str,
    form: str,
    plot: Path | None,
    **flags: Any,  # noqa: ANN401 - the shared flags, checked by click
) -> int:
    """Say what a config, or every ZeRO stage, takes of GPUs, hosts and NVMe for a model, and what GPUs send each other.

    Without CONFIG all stages with every offload stand side by side, with the defaults of the release and Adam; with one
    its own parts. The model is read from its files or given as a size; nothing is imported, and no weights are read.
    Exits with 1 where --gpu-memory or --gpu is given and the config, or every variant, does not fit, and where
    DeepSpeed rejects the CONFIG.
    """
    if plot is not None and plot.suffix not in {".svg", ".html"}:
        raise click.UsageError(f"--plot {plot}: write a name that ends in .svg or .html")
    described = model_of(flags)
    machine = machine_of(flags, gpu_memory)
    try:
        version = (
            check_release(flags["deepspeed_version"], "--deepspeed-version") if flags["deepspeed_version"] else None
        )
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
    kept = Checkpointing(activation_checkpointing)
    if config is None:
        work = _with(work_of(flags), kept)
        found = compared(
            described, machine, work, half=flags["precision"], steps=flags["accumulation"], version=version
        )
        release = knowledge(version).version
    else:
        found, release = _of_config(config, described, machine, flags | {"kept": kept, "version": version})
    _print(found, release, form, alone=config is not None)
    if plot is not None:
        _plot(plot, found, release)
    too_large = machine.gpu is not None and not any(one.fits for one in found)
    return 1 if too_large or any(one.rejected for one in found) else 0


def _of_config(name: str, described: Described, machine: Machine, flags: dict[str, Any]) -> tuple[list[Estimate], str]:
    document = _read(name)
    folder = None if name == STDIN else Path(name).parent
    version = flags["version"] or release_for(folder or Path()).value
    consumer = Consumer(flags["consumer"] or consumer_for(document, folder).value)
    facts = Facts(world_size=machine.ranks, gpu_memory=machine.gpu, parameters=described.model.parameters)
    view = View(document, Settings(version=version, consumer=consumer, facts=facts))
    micro_batch = whole(view.context.number("train_micro_batch_size_per_gpu"))
    found = estimate(name, view.context, described, machine, _with(work_of(flags, micro_batch), flags["kept"]))
    if found is None:
        raise click.UsageError(f"{name}: the ZeRO stage is not known: zero_optimization.stage is not one of 0 to 3")
    grave = (one for one in view.findings if one.severity is Severity.ERROR and one.effect is Effect.REJECTED)
    return [replace(found, rejected=tuple(grave))], view.known.version


def _read(name: str) -> Document:
    try:
        document = parse_bytes(read_stdin() if name == STDIN else read(Path(name)))
    except SourceError as error:
        raise click.UsageError(f"{name}: {error.message}") from None
    except DocumentError as error:
        raise click.UsageError(f"{name}: {error}") from None
    if document.root is None:
        raise click.UsageError(f"{name}: no config can be read from it")
    return document


def _with(work: Workload, kept: Checkpointing) -> Workload:
    return replace(work, checkpointing=kept)


def _print(found: list[Estimate], version: str, form: str, *, alone: bool) -> None:
    if form == "json":
        from dsmigrate.memory.formats import json as as_json  # noqa: PLC0415 - each is used alone

        terminal.write(as_json.render(found, version))
        return
    from dsmigrate.memory.formats import text  # noqa: PLC0415

    terminal.show(text.render(found, version, alone=alone))


def _plot(file: Path, found: list[Estimate], version: str) -> None:
    from dsmigrate.memory.formats import picture  # noqa: PLC0415 - only where it is asked for

    drawn = picture.svg(found) if file.suffix == ".svg" else picture.html(found, version)
    try:
        file.write_text(drawn, encoding="utf-8", newline="\n")
    except OSError as error:
        raise click.UsageError(f"--plot {file}: cannot be written: {error.strerror}") from None
    terminal.tell(f"wrote {file}")
