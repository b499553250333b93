"""Small trees that look like the sources of a DeepSpeed release."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

from dsmigrate.derivation.run import run_config_code

UTILS_2 = """
from pydantic import BaseModel, ConfigDict

class DeepSpeedConfigModel(BaseModel):
    def __init__(self, strict=False, **data):
        super().__init__(**{k: v for k, v in data.items() if v != "auto"})

    model_config = ConfigDict(validate_default=True, use_enum_values=True, populate_by_name=True, extra="forbid",
                              arbitrary_types_allowed=True, protected_namespaces=())

def get_scalar_param(param_dict, param_name, param_default_value):
    return param_dict.get(param_name, param_default_value)
"""
UTILS_1 = """
from pydantic import BaseModel

class DeepSpeedConfigModel(BaseModel):
    def __init__(self, strict=False, **data):
        super().__init__(**{k: v for k, v in data.items() if v != "auto"})

    class Config:
        validate_all = True
        use_enum_values = True
        allow_population_by_field_name = True
        extra = "forbid"
        arbitrary_types_allowed = True

def get_scalar_param(param_dict, param_name, param_default_value):
    return param_dict.get(param_name, param_default_value)
"""
CONFIG = """
import os
import torch
import hjson
from typing import Any, Dict, List, Literal, Optional, Union
from enum import Enum
from pathlib import Path
from pydantic import Field
from .config_utils import DeepSpeedConfigModel, get_scalar_param
from deepspeed import comm as dist
from ..utils import logger

ADAM_OPTIMIZER = 'adam'
LAMB_OPTIMIZER = 'lamb'
DEEPSPEED_OPTIMIZERS = [ADAM_OPTIMIZER, LAMB_OPTIMIZER]

{module}

class DeepSpeedConfig(object):

    def __init__(self, config: Union[str, dict], mpu=None):
        super(DeepSpeedConfig, self).__init__()
        if isinstance(config, dict):
            self._param_dict = config
        else:
            self._param_dict = hjson.load(open(config, "r"))
        self._initialize_params(dict(self._param_dict))

    def _initialize_params(self, param_dict):
{initialize}
"""
ENGINE = """
import torch
from deepspeed.runtime.config import DeepSpeedConfig, ADAM_OPTIMIZER, LAMB_OPTIMIZER
from torch.nn.modules import Module

{module}

class DeepSpeedEngine(Module):

    def __init__(self, args, model, config=None):
        super().__init__()
        self._config = DeepSpeedConfig(config)

    def optimizer_name(self):
        return self._config.optimizer_name

{methods}
"""
PIPE_ENGINE = """
from ..engine import DeepSpeedEngine

class PipelineEngine(DeepSpeedEngine):

    def __init__(self, *super_args, **super_kwargs):
        super().__init__(*super_args, **super_kwargs)
{initialize}
"""
SCHEDULES = """
WARMUP_LR = 'WarmupLR'
VALID_LR_SCHEDULES = [WARMUP_LR]

class WarmupLR(object):
    def __init__(self, optimizer, warmup_num_steps=1000, last_batch_iteration=-1):
        pass
"""


def release(
    root: Path,
    *,
    module: str = "",
    initialize: str = "pass",
    engine: str = "",
    methods: str = "",
    pipe: str = "pass",
    utils: str = UTILS_2,
    files: dict[str, str] | None = None,
) -> Path:
    """Write a release below ``root``; the texts go into config.py, the constructor of the config, and the engines."""
    texts = {
        "__init__.py": "def initialize(args=None, model=None, config=None):\n    pass\n",
        "runtime/__init__.py": "",
        "runtime/pipe/__init__.py": "",
        "utils/__init__.py": "",
        "comm/__init__.py": "",
        "runtime/config_utils.py": utils,
        "runtime/config.py": CONFIG.format(module=dedent(module), initialize=indent(dedent(initialize), " " * 8)),
        "runtime/engine.py": ENGINE.format(module=dedent(engine), methods=indent(dedent(methods), " " * 4)),
        "runtime/pipe/engine.py": PIPE_ENGINE.format(initialize=indent(dedent(pipe), " " * 8)),
        "runtime/lr_schedules.py": SCHEDULES,
    } | {name: dedent(text) for name, text in (files or {}).items()}
    for name, text in texts.items():
        path = root / "deepspeed" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def keys(root: Path) -> dict[str, dict[str, object]]:
    """Return the facts of every key of the release at ``root``."""
    return dict(run_config_code("0.0.1", root)["keys"])


def plain(facts: dict[str, object]) -> dict[str, object]:
    """Return facts without what says where they are from."""
    return {name: value for name, value in facts.items() if name not in {"validated", "source"}}
