"""The model that a config trains, for the rules: from ``--model``, from ``config.json`` beside it, or from its size."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.rules import Facts, ModelFacts
from dsmigrate.settings.check import CheckSettings
from dsmigrate.settings.errors import SettingsError

if TYPE_CHECKING:  # few checks know a model
    from dsmigrate.memory.shape import Described
    from dsmigrate.rules.context import Context

_LARGEST = 1 << 20


def with_model(known: Facts, settings: CheckSettings, folder: Path | None) -> Facts:
    """Return facts with the model that the settings name, or that lies in ``folder``; else with one of the size given.

    Of it train what the settings say, or an ``adapter_config.json`` in ``folder``. Raises SettingsError for a model, or
    what trains of it, of the settings that cannot be read; others are passed over.
    """
    beside = None if folder is None else folder / "config.json"
    path = settings.model or (beside if beside is not None and _is_model(beside) else None)
    if path is None and known.parameters is None:
        return known
    from dsmigrate.memory.sources import ModelError, described, typical  # noqa: PLC0415 - few checks know a model
    from dsmigrate.memory.trained import ADAPTER, narrowed  # noqa: PLC0415

    try:
        model = described(path) if path is not None else typical(known.parameters or 1)
    except ModelError as error:
        if settings.model is not None:
            raise SettingsError(f"--model: {error}") from None
        return known
    adapter = None if folder is None else folder / ADAPTER
    wanted = settings.trainable or (str(adapter) if adapter is not None and adapter.is_file() else None)
    if wanted is not None:
        try:
            model = narrowed(model, wanted, settings.base_weights)
        except ModelError as error:
            if settings.trainable is not None:
                raise SettingsError(f"--trainable: {error}") from None
    whole = known.parameters is not None and not model.model.frozen
    parameters = known.parameters if whole else model.model.parameters
    return replace(known, parameters=parameters, model=_facts(model, known, str(path or "")))


def _is_model(file: Path) -> bool:
    try:
        values = json.loads(read(file, _LARGEST))
    except (SourceError, ValueError, RecursionError):
        return False
    return isinstance(values, dict) and "model_type" in values


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
    )
