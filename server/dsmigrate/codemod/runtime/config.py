"""A config of DeepSpeed in which some values are known only when the script runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def load_config(script: str, name: str = "ds_config.json", **values: Any) -> dict[str, Any]:
    """Read the config that lies beside ``script`` (its ``__file__``), and put in what the script computes.

    A dictionary is put in key by key, ``torch_autocast={"enabled": args.amp}``, anything else as it is, but for
    ``gradient_clipping=None``, which switches clipping off: DeepSpeed from 0.19.3 on clips to 1.0 by default.
    """
    config: dict[str, Any] = json.loads(Path(script).resolve().with_name(name).read_text())
    if "gradient_clipping" in values:
        values["gradient_clipping"] = values["gradient_clipping"] or 0.0
    put_in(config, values)
    return config


def put_in(config: dict[str, Any], values: dict[str, Any]) -> None:
    """Put values into a config, those of a dictionary within it key by key."""
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(config.get(key), dict):
            put_in(config[key], value)
        else:
            config[key] = value
