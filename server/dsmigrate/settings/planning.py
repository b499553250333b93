"""The ZeRO stage and the offload of a migration, where the size of the model and the GPUs are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dsmigrate.codemod.model import Options
from dsmigrate.settings.check import size_of
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.fields import Value

NAMES = ("params", "gpu-memory", "gpus", "loss")
"""The settings that describe model and machine; they choose, and are no options of the codemod."""
_OWN = {"stage", "overlap_comm", "stage3_gather_16bit_weights_on_model_save"}
"""What the codemod decides itself: stage 1 refuses overlap where the script accumulates on its own."""
_GIB = 1 << 30


def planned(options: Options, merged: Mapping[str, Value]) -> Options:
    """Return the options with the stage and the offload that are the fastest of those that fit; a given one stays.

    Weights are in fp32 unless ``precision`` says otherwise, as autocast leaves them. Raises SettingsError where
    something is missing or superfluous, and where nothing fits.
    """
    given = [name for name in NAMES if name in merged]
    if not given:
        return options
    for name in ("params", "gpu-memory"):
        if name not in merged:
            raise SettingsError(f"--{given[0]} chooses stage and offload together with --{name}: write both")
    if options.config is not None:
        raise SettingsError("a config is given, which has stage and offload: leave out --params, or --config")
    return _chosen(options, merged)


def _chosen(options: Options, merged: Mapping[str, Value]) -> Options:
    from dsmigrate.memory.activations import Checkpointing, Loss, Workload  # noqa: PLC0415 - only runs that plan pay for it
    from dsmigrate.memory.estimate import Machine  # noqa: PLC0415
    from dsmigrate.memory.sources import typical  # noqa: PLC0415
    from dsmigrate.memory.variants import Variant  # noqa: PLC0415
    from dsmigrate.recommend import Request, recommend  # noqa: PLC0415
    from dsmigrate.recommend.reasons import lacking  # noqa: PLC0415

    parameters = size_of(merged["params"], "--params")
    gpus, memory = int(merged.get("gpus", 1)), int(merged["gpu-memory"])
    if gpus < 1 or memory < 1:
        raise SettingsError("--gpus and --gpu-memory (in GiB) are at least 1")
    variants = tuple(
        Variant(stage, offload, offload if stage == 3 else "none")
        for stage in (0, 1, 2, 3)
        for offload in ("none", "cpu", "nvme")
        if options.zero_stage in {None, stage}
        and ("offload" not in merged or offload == options.offload)
        and not (offload != "none" and not stage)
        and not (offload == "nvme" and (stage < 3 or options.nvme_path is None))
    )
    half = "fp32" if options.precision == "keep" else options.precision
    found = recommend(
        Request(
            described=typical(parameters),
            machine=Machine(gpus=gpus, gpu=memory * _GIB),
            work=Workload(loss=Loss(merged["loss"]) if "loss" in merged else None),
            half=half,
            nvme_path=options.nvme_path,
            version=options.target_version,
            variants=variants,
            plain=True,
        )
    )
    said = f"{merged['params']} parameters in {half} on {gpus} GPU{'s'[: gpus > 1]} of {memory} GiB"
    if found.chosen is None:
        least = f": {found.failing[0].variant.name} {lacking(found.failing[0])}" if found.failing else ""
        raise SettingsError(f"nothing fits {said}{least}; `dsmigrate recommend` says what would")
    chosen = found.chosen
    if chosen.checkpointing is not Checkpointing.NONE:
        said += " with activation checkpointing, which the model has to switch on"
    sizes = {name: value for name, value in chosen.config["zero_optimization"].items() if name not in _OWN}
    return replace(
        options,
        zero_stage=chosen.variant.stage,
        offload=chosen.variant.optimizer,
        chosen_for=said,
        chosen_sizes=sizes,
    )
