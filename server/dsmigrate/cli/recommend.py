"""``dsmigrate recommend``: which stage and offload fit, fastest first, and the config of the first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from dsmigrate.cli import terminal
from dsmigrate.cli.planning_options import machine_of, model_of, planning_options, work_of
from dsmigrate.files.reading import read_if_there
from dsmigrate.files.text import SourceError
from dsmigrate.files.writing import Write, WriteError, write_all
from dsmigrate.knowledge import Consumer
from dsmigrate.memory.activations import Checkpointing
from dsmigrate.memory.variants import HALVES
from dsmigrate.recommend import Recommendation, Request, recommend
from dsmigrate.recommend.speed import machines
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.releases import check_release

_SIZE = click.FloatRange(min=0, min_open=True)
_KEPT = ["auto", *(one.value for one in Checkpointing)]


@click.command("recommend", short_help="Say which ZeRO stage and offload fit, and write the config.")
@planning_options
@click.option("--gpu-memory", type=_SIZE, metavar="GIB", required=True, help="Memory of one GPU.")
@click.option("--nvme", metavar="DIR", help="Directory on an NVMe disk, where one may be used.")
@click.option("--nvme-size", type=_SIZE, metavar="GIB", help="Room there, per node.")
@click.option(
    "--interconnect",
    type=click.Choice(list(machines()["links"])),
    default="nvlink",
    show_default=True,
    help="The slowest link that GPUs exchange through.",
)
@click.option("--hardware", metavar="NAME", help="GPU, such as v100: tells speed, and whether there is bf16.")
@click.option("--precision", type=click.Choice(HALVES), default="bf16", show_default=True)
@click.option(
    "--accumulation", type=click.IntRange(min=1), default=1, show_default=True, help="Micro-batches of a step."
)
@click.option("--activation-checkpointing", type=click.Choice(_KEPT), default="auto", show_default=True)
@click.option(
    "--consumer",
    type=click.Choice([one.value for one in Consumer]),
    default="deepspeed",
    show_default=True,
    help="Who reads the config.",
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the config there."
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--brief", is_flag=True, help="Leave out the list of what to do if.")  # fmt: skip
def command(  # noqa: PLR0917 - click passes by name
    gpu_memory: float,
    nvme: str | None,
    nvme_size: float | None,
    output: Path | None,
    force: bool,  # noqa: FBT001
    form: str,
    brief: bool,  # noqa: FBT001
    **flags: Any,  # noqa: ANN401 - the flags of a request, checked by click
) -> int:
    """Say which ZeRO stage and offload fit a model on these machines, fastest first, with a config for the first.

    What fits follows `dsmigrate memory` of the very config; the order is an estimate. The config is valid for the
    release and for who reads it. Exits with 1 where nothing fits.
    """
    kept = flags["activation_checkpointing"]
    try:
        version = (
            check_release(flags["deepspeed_version"], "--deepspeed-version") if flags["deepspeed_version"] else None
        )
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
    request = Request(
        described=model_of(flags),
        machine=machine_of(flags, gpu_memory, nvme_size),
        work=work_of(flags),
        half=flags["precision"],
        steps=flags["accumulation"],
        link=flags["interconnect"],
        hardware=flags["hardware"],
        nvme_path=nvme,
        consumer=Consumer(flags["consumer"]),
        version=version,
        kept=(Checkpointing.NONE, Checkpointing.FULL) if kept == "auto" else (Checkpointing(kept),),
    )
    found = recommend(request)
    if output is not None and found.chosen is not None:
        _write(output, found, force=force)
    _print(found, form, config=output is None, brief=brief)
    return 0 if found.chosen is not None else 1


def _write(file: Path, found: Recommendation, *, force: bool) -> None:
    assert found.chosen is not None  # noqa: S101 - asked before
    data = (json.dumps(found.chosen.config, indent=2) + "\n").encode()
    try:
        there = read_if_there(file)
    except SourceError as error:
        raise click.UsageError(f"{file}: {error.message}") from None
    if there is not None and there != data and not force:
        raise click.UsageError(f"{file} is there and differs: --force replaces it")
    try:
        write_all([Write(file, data, there, file.parent)])
    except WriteError as error:
        raise click.UsageError(f"{error}. Nothing was written") from None
    terminal.tell(f"wrote {file}")


def _print(found: Recommendation, form: str, *, config: bool, brief: bool) -> None:
    if form == "json":
        from dsmigrate.recommend.formats import json as as_json  # noqa: PLC0415 - each is used alone

        terminal.write(as_json.render(found))
        return
    from dsmigrate.recommend.formats import text  # noqa: PLC0415

    terminal.show(text.render(found, config=config, topics_too=not brief))
