"""The model that a config trains, for the rules: from ``--model``, from ``config.json`` beside it, or from its size."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dsmigrate.checking.freezing import freezing
from dsmigrate.rules import Facts, ModelFacts
from dsmigrate.settings.check import CheckSettings
from dsmigrate.settings.errors import SettingsError

if TYPE_CHECKING:  # few checks know a model
    from dsmigrate.memory.shape import Described
    from dsmigrate.memory.trained import Adapter
    from dsmigrate.rules.context import Context

ADAPTER = "adapter_config.json"
_INDEX = "model.safetensors.index.json"
_WHOLE = "16bit"


def with_model(known: Facts, settings: CheckSettings, folder: Path | None) -> Facts:
    """Return facts with the model that the settings name, or that lies in ``folder``; else with one of the size given.

    Of it train what the settings say, an ``adapter_config.json`` in ``folder``, or the LoRA that a script there writes
    out. Where weights are quantised, or a script freezes some, nothing is counted until one of them says what trains.
    Raises SettingsError for a model, or what trains of it, of the settings that cannot be read; others are passed over.
    """
    beside = None if folder is None else folder / "config.json"
    path = settings.model or (beside if beside is not None and beside.is_file() else None)
    if path is None and known.parameters is None:
        return known
    adapter = None if folder is None else folder / ADAPTER
    wanted = settings.trainable or (str(adapter) if adapter is not None and adapter.is_file() else None)
    frozen = freezing(folder) if wanted is None and folder is not None else None
    base = settings.base_weights or (None if frozen is None else frozen.base or None)
    read = _Read(path, known.parameters, wanted, base, None if frozen is None else frozen.adapter)
    model, problem, trains = _model(read, _stamps(path, wanted))
    if problem and (settings.trainable if model is not None else settings.model) is not None:
        raise SettingsError(problem)
    if model is None:
        return known
    trains = trains if frozen is None else frozen.script
    found = replace(_facts(model, known, str(path or "")), trains=trains, base=base or model.base)
    if not found.frozen and (frozen is not None or model.base != _WHOLE):
        return replace(known, parameters=None, model=replace(found, held=None))
    whole = known.parameters is not None and not model.model.frozen
    return replace(known, parameters=known.parameters if whole else model.model.parameters, model=found)


@dataclass(frozen=True, slots=True)
class _Read:
    """Where a model, and what trains of it, are read."""

    path: Path | None
    parameters: int | None
    wanted: str | None
    base: str | None
    adapter: Adapter | None = None


@functools.lru_cache(maxsize=8)
def _model(read: _Read, _stamps: tuple[object, ...]) -> tuple[Described | None, str, str]:
    """Return the model, what cannot be read of it, and where it was read what trains; an editor asks at each key."""
    from dsmigrate.memory.sources import ModelError, described, typical  # noqa: PLC0415 - few checks know a model
    from dsmigrate.memory.trained import narrowed, with_adapter  # noqa: PLC0415

    try:
        model = described(read.path) if read.path is not None else typical(read.parameters or 1)
    except ModelError as error:
        return None, f"--model: {error}", ""
    if read.wanted is None:
        with contextlib.suppress(ModelError):  # then it is not known what trains
            model = model if read.adapter is None else with_adapter(model, read.adapter, read.base or model.base)
        return model, "", ""
    try:
        return narrowed(model, read.wanted, read.base), "", read.wanted
    except ModelError as error:
        return model, f"--trainable: {error}", ""
    except SettingsError as error:
        return model, str(error), ""


def _stamps(path: Path | None, wanted: str | None) -> tuple[object, ...]:
    """Return what changes when a file is written that a model is read from."""
    files = [] if path is None else [path, *(path / name for name in ("config.json", "model.safetensors", _INDEX))]
    found: list[object] = []
    for file in (*files, *([] if wanted is None else [Path(wanted), Path(wanted) / ADAPTER])):
        try:
            state = file.stat()
        except (OSError, ValueError):
            found.append(None)
        else:
            found.append((state.st_mtime_ns, state.st_size, state.st_ino))
    return tuple(found)


def _facts(model: Described, known: Facts, where: str) -> ModelFacts:
    from dsmigrate.memory.activations import Workload  # noqa: PLC0415 - few checks know a model
    from dsmigrate.memory.estimate import Machine, estimate  # noqa: PLC0415
    from dsmigrate.memory.model import Place, What  # noqa: PLC0415

    def held(context: Context) -> int | None:
        if not known.world_size:
            return None
        machine = Machine(gpus=known.world_size, gpu=known.gpu_memory)
        found = estimate("", context, model, machine, Workload(1, 1))
        if found is None:
            return None
        alone = found.usage.select(what=set(What) - {What.ACTIVATIONS})
        return replace(found.usage, parts=alone).peak(Place.GPU)

    return ModelFacts(
        name=where or model.name,
        tensors=(*model.model.frozen, *model.model.tensors),
        exact=model.exact,
        heads=model.shape.heads if model.shape is not None and model.exact else None,
        block=model.block,
        held=held,
        frozen=model.model.frozen,
        frozen_width=model.model.frozen_width,
    )
