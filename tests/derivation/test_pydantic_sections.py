from __future__ import annotations

from pathlib import Path

import pytest

from tests.derivation.fake import UTILS_1, UTILS_2, keys, plain, release

READ = 'self.zero = Zero(**param_dict["zero_optimization"]) if "zero_optimization" in param_dict else Zero()'
MODELS = """
class Stage(int, Enum):
    disabled = 0
    weights = 3
    max_stage = 3

class Device(str, Enum):
    none = "none"
    cpu = "cpu"

class Offload(DeepSpeedConfigModel):
    device: Device = "none"
    nvme_path: {optional_path} = None
    ratio: float = Field(1.0, ge=0.0, le=1.0)

class Zero(DeepSpeedConfigModel):
    stage: Stage = 0
    bucket: int = Field(int(5e8), gt=0)
    prefetch: int = Field(7, ge=0, alias="stage3_prefetch")
    overlap: Optional[bool] = None
    interval: Union[str, int] = "auto"
    names: List[str] = []
    passes: Optional[List[Literal["z1", "z3"]]] = None
    free: Dict[str, Any] = Field({empty})
    mpu: object = None
    dtype: torch.dtype = torch.float16
    offload: Optional[Offload] = None
    cpu_offload: Optional[bool] = Field(None, {deprecated})
"""
V2 = MODELS.format(
    optional_path="Optional[Path]",
    empty="default_factory=dict",
    deprecated='json_schema_extra={"deprecated": True, "new_param": "offload or prefetch"}',
)
V1 = MODELS.format(optional_path="Path", empty="{}", deprecated='deprecated=True, new_param="offload or prefetch"')
STYLES = pytest.mark.parametrize(("module", "utils"), [(V2, UTILS_2), (V1, UTILS_1)], ids=["pydantic 2", "pydantic 1"])


@STYLES
def test_every_field_becomes_a_key_with_type_default_and_range(tmp_path: Path, module: str, utils: str) -> None:
    found = keys(release(tmp_path, module=module, initialize=READ, utils=utils))
    assert {path: plain(facts) for path, facts in found.items()} == {
        "zero_optimization": {"type": ["object"], "unknownKeys": "reject"},
        "zero_optimization.stage": {"type": ["integer"], "enum": [0, 3], "default": 0},
        "zero_optimization.bucket": {"type": ["integer"], "default": 500000000, "exclusiveMinimum": 0},
        "zero_optimization.stage3_prefetch": {"type": ["integer"], "default": 7, "minimum": 0, "field": "prefetch"},
        "zero_optimization.overlap": {"type": ["boolean", "null"], "default": None},
        "zero_optimization.interval": {"type": ["integer", "string"], "default": "auto"},
        "zero_optimization.names": {"type": ["array"], "items": {"type": ["string"]}, "default": []},
        "zero_optimization.passes": {
            "type": ["array", "null"],
            "items": {"type": ["string"], "enum": ["z1", "z3"]},
            "default": None,
        },
        "zero_optimization.free": {"type": ["object"], "default": {}, "unknownKeys": "ignore"},
        "zero_optimization.mpu": {"type": None, "default": None},
        "zero_optimization.dtype": {"type": None},
        "zero_optimization.offload": {"type": ["object", "null"], "default": None, "unknownKeys": "reject"},
        "zero_optimization.offload.device": {"type": ["string"], "enum": ["none", "cpu"], "default": "none"},
        "zero_optimization.offload.nvme_path": {"type": ["string", "null"], "default": None},
        "zero_optimization.offload.ratio": {"type": ["number"], "default": 1.0, "minimum": 0.0, "maximum": 1.0},
        "zero_optimization.cpu_offload": {
            "type": ["boolean", "null"],
            "default": None,
            "deprecated": True,
            "replacedBy": ["zero_optimization.offload", "zero_optimization.stage3_prefetch"],
        },
    }
    assert {facts["validated"] for facts in found.values()} == {"pydantic"}
    assert {facts["source"] for facts in found.values()} == {"deepspeed/runtime/config.py"}


def test_the_move_from_pydantic_1_to_2_changes_nothing(tmp_path: Path) -> None:
    old = keys(release(tmp_path / "1", module=V1, initialize=READ, utils=UTILS_1))
    assert old == keys(release(tmp_path / "2", module=V2, initialize=READ, utils=UTILS_2))


def test_a_release_may_import_pydantic_1_through_a_module_of_its_own(tmp_path: Path) -> None:
    utils = UTILS_1.replace("from pydantic import", "from deepspeed.pydantic_v1 import")
    module = V1.replace("from pydantic import Field", "")
    layer = {"pydantic_v1.py": "from pydantic.v1 import *\n"}
    found = keys(release(tmp_path, module=module, initialize=READ, utils=utils, files=layer))
    assert found["zero_optimization.stage3_prefetch"]["minimum"] == 0


def test_a_model_that_ignores_unknown_keys_says_so(tmp_path: Path) -> None:
    utils = UTILS_2.replace('extra="forbid"', 'extra="ignore"')
    assert (
        keys(release(tmp_path, module=V2, initialize=READ, utils=utils))["zero_optimization"]["unknownKeys"] == "ignore"
    )


def test_sections_that_are_handed_over_in_one_dict_are_judged_by_the_models_of_its_fields(tmp_path: Path) -> None:
    module = """
    class Board(DeepSpeedConfigModel):
        enabled: bool = False

    class Monitor(DeepSpeedConfigModel):
        tensorboard: Board = {}
        wandb: Board = {}

    def get_monitor_config(param_dict):
        monitor_dict = {key: param_dict.get(key, {}) for key in ("tensorboard", "wandb")}
        return Monitor(**monitor_dict)
    """
    found = keys(release(tmp_path, module=module, initialize="self.monitor = get_monitor_config(param_dict)"))
    assert sorted(found) == ["tensorboard", "tensorboard.enabled", "wandb", "wandb.enabled"]
    assert found["wandb"]["unknownKeys"] == "reject"


def test_a_section_with_an_old_name_has_its_keys_under_the_new_name_only(tmp_path: Path) -> None:
    initialize = """
    section = param_dict.get("bf16", None)
    if section is None:
        section = param_dict.get("bfloat16", {})
    self.bf16 = Bf16(**section)
    """
    module = "class Bf16(DeepSpeedConfigModel):\n    enabled: bool = False\n"
    found = keys(release(tmp_path, module=module, initialize=initialize))
    assert sorted(found) == ["bf16", "bf16.enabled", "bfloat16"]
    assert plain(found["bfloat16"]) == {"type": ["object"], "aliasOf": "bf16", "unknownKeys": "reject"}


def test_a_section_with_a_short_form_may_be_of_that_type_too(tmp_path: Path) -> None:
    initialize = """
    section = param_dict["zero_optimization"]
    if isinstance(section, bool):
        section = {"stage": 1 if section else 0}
    self.zero = Zero(**section)
    """
    found = keys(release(tmp_path, module=V2, initialize=initialize))
    assert found["zero_optimization"]["type"] == ["boolean", "object"]


def test_keys_read_below_a_free_form_field_are_keys_and_those_a_model_does_not_know_are_not(tmp_path: Path) -> None:
    autotp = """
    class AutoTPConfig:
        @classmethod
        def from_dict(cls, config_dict):
            for spec in config_dict.get("layer_specs", []):
                spec.get("patterns", [])
            return cls()
    """
    module = "class TP(DeepSpeedConfigModel):\n    partition_config: Optional[Dict[str, Any]] = None\n"
    initialize = 'self.tp = TP(**param_dict["tensor_parallel"])\nparam_dict["tensor_parallel"].get("typo", 1)'
    files = {"module_inject/autotp_config.py": autotp}
    found = keys(release(tmp_path, module=module, initialize=initialize, files=files))
    assert "tensor_parallel.typo" not in found
    assert found["tensor_parallel.partition_config"]["unknownKeys"] == "ignore"
    assert plain(found["tensor_parallel.partition_config.layer_specs[].patterns"]) == {"type": ["array"], "default": []}
