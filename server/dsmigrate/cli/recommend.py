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
from dsmigrate.recommend.choose import degrees
from dsmigrate.recommend.speed import known_gpu, machines
from dsmigrate.rules.precision.hardware import lacks_bf16
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.releases import check_release

_SAMPLES = 128
_SIZE = click.FloatRange(min=0, min_open=True)
_KEPT = ["auto", *(one.value for one in Checkpointing)]


@click.command("recommend", short_help="Say which ZeRO stage and offload fit, and write the config.")
@planning_options
@click.option("--gpu-memory", type=_SIZE, metavar="GIB", help="Memory of one GPU; --gpu knows it.")
@click.option("--nvme", metavar="DIR", help="Directory on an NVMe disk, where one may be used.")
@click.option("--nvme-size", type=_SIZE, metavar="GIB", help="Room there, per node.")
@click.option(
    "--interconnect",
    type=click.Choice(list(machines()["links"])),
    help="The slowest link that GPUs exchange through; default that of --gpu or nvlink, infiniband between nodes.",
)
@click.option("--hardware", metavar="NAME", help="GPU without --gpu, such as v100: speed, and whether there is bf16.")
@click.option("--precision", type=click.Choice(HALVES), help="Default bf16, and fp16 where the GPU has no bf16.")
@click.option(
    "--global-batch",
    type=click.IntRange(min=1),
    metavar="SAMPLES",
    help=f"Samples of a step on all GPUs: micro-batch and accumulation are chosen. Default about {_SAMPLES}, unless "
    "--micro-batch or --accumulation is given.",
)
@click.option("--accumulation", type=click.IntRange(min=1), help="Micro-batches of a step.")
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
    gpu_memory: float | None,
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
    machine = machine_of(flags, gpu_memory, nvme_size)
    if machine.gpu is None:
        raise click.UsageError("give the memory of a GPU: --gpu-memory 80, or --gpu a100-80gb")
    hardware = _hardware(flags)
    half, because = _precision(flags["precision"], hardware)
    samples, assumed = _samples(flags, machine.ranks)
    inner = "nvlink" if flags["gpu"] is None else machines()["presets"][flags["gpu"]][1]
    request = Request(
        described=model_of(flags),
        machine=machine,
        work=work_of(flags),
        half=half,
        steps=flags["accumulation"] or 1,
        samples=samples,
        link=flags["interconnect"] or (inner if machine.nodes == 1 else "infiniband"),
        inner=inner if machine.nodes > 1 else None,
        hardware=hardware,
        nvme_path=nvme,
        consumer=Consumer(flags["consumer"]),
        version=version,
        kept=(Checkpointing.NONE, Checkpointing.FULL) if kept == "auto" else (Checkpointing(kept),),
        assumed=(*because, *assumed),
    )
    if not (request.divides or any(request.sharing(number).divides for number in degrees(request))):
        raise click.UsageError(f"--global-batch {samples} does not divide over {machine.ranks} GPUs")
    found = recommend(request)
    if output is not None and found.chosen is not None:
        _write(output, found, force=force)
    _print(found, form, config=output is None, brief=brief)
    return 0 if found.chosen is not None else 1


def _hardware(flags: dict[str, Any]) -> str | None:
    """Return the name of the GPU; raises UsageError for one that is not known."""
    if flags["hardware"] is None:
        return None if flags["gpu"] is None else str(flags["gpu"])
    if flags["gpu"] is not None:
        raise click.UsageError("--gpu says what --hardware does: give one of them")
    name = str(flags["hardware"])
    if known_gpu(name) is None and not lacks_bf16(name):
        raise click.UsageError(f"--hardware {name!r} is not known; known: {', '.join(machines()['gpus'])}")
    return name


def _precision(wanted: str | None, hardware: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the precision, and why it is not the one that was meant."""
    if wanted in {None, "bf16"} and hardware is not None and lacks_bf16(hardware):
        return "fp16", (f"fp16 instead of bf16: {hardware} has no bf16.",)
    return wanted or "bf16", ()


def _samples(flags: dict[str, Any], ranks: int) -> tuple[int | None, tuple[str, ...]]:
    """Return the samples of a step for which the batch is chosen, and what was assumed; raises UsageError."""
    wanted, given = flags["global_batch"], flags["micro_batch"] is not None
    if wanted is None:
        if given or flags["accumulation"] is not None:
            return None, ()
        samples = -(-_SAMPLES // ranks) * ranks
        return samples, (f"{samples} samples per step are assumed: --global-batch says how many there are.",)
    if flags["accumulation"] is not None or (given and wanted % (ranks * flags["micro_batch"])):
        raise click.UsageError("--global-batch is micro-batch × accumulation × GPUs: give two of the three that fit")
    if given:
        flags["accumulation"] = wanted // (ranks * flags["micro_batch"])
        return None, ()
    return wanted, ()


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
