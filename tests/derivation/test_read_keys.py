from __future__ import annotations

from pathlib import Path

import pytest

from tests.derivation.fake import keys, plain, release


def derived(root: Path, initialize: str, module: str = "", **more: str) -> dict[str, dict[str, object]]:
    found = keys(release(root, module=module, initialize=initialize, **more))  # type: ignore[arg-type]
    return {path: plain(facts) for path, facts in found.items()}


def test_the_default_of_a_getter_says_the_type(tmp_path: Path) -> None:
    module = """
    CLIP = "gradient_clipping"
    CLIP_DEFAULT = 1.
    def get_clip(param_dict):
        return get_scalar_param(param_dict, CLIP, CLIP_DEFAULT)
    """
    initialize = """
    self.clip = get_clip(param_dict)
    self.steps = param_dict.get("steps_per_print", 10)
    self.dump = param_dict.get("dump_state", False)
    self.name = param_dict.get("name", "run")
    self.size = param_dict.get("size", 64 * 1024**2)
    self.log = param_dict.get("log_level", None)
    self.tags = param_dict.get("tags")
    self.batch = param_dict["train_batch_size"]
    """
    assert derived(tmp_path, initialize, module) == {
        "gradient_clipping": {"type": ["number"], "default": 1.0},
        "steps_per_print": {"type": ["integer"], "default": 10},
        "dump_state": {"type": ["boolean"], "default": False},
        "name": {"type": ["string"], "default": "run"},
        "size": {"type": ["integer"], "default": 67108864},
        "log_level": {"type": None, "default": None},
        "tags": {"type": None, "default": None},
        "train_batch_size": {"type": None},
    }


def test_a_read_through_a_helper_belongs_to_the_file_that_calls_it(tmp_path: Path) -> None:
    aio = """
    from deepspeed.runtime.config_utils import get_scalar_param

    def get_aio_config(param_dict):
        if "aio" in param_dict.keys() and param_dict["aio"] is not None:
            return {"block_size": get_scalar_param(param_dict["aio"], "block_size", 1)}
        return {}
    """
    root = release(
        tmp_path,
        module="from .aio_config import get_aio_config",
        initialize="self.aio = get_aio_config(param_dict)",
        files={"runtime/aio_config.py": aio},
    )
    assert keys(root) == {
        "aio": {
            "type": ["object"],
            "validated": "read",
            "unknownKeys": "ignore",
            "source": "deepspeed/runtime/aio_config.py",
        },
        "aio.block_size": {
            "type": ["integer"],
            "default": 1,
            "validated": "read",
            "source": "deepspeed/runtime/aio_config.py",
        },
    }


def test_keys_looked_for_in_a_list_of_names_are_found(tmp_path: Path) -> None:
    initialize = """
    fp16 = param_dict["fp16"]
    names = ["loss_scale_window", "min_loss_scale"]
    if any(name in list(fp16.keys()) for name in names):
        window = get_scalar_param(fp16, "loss_scale_window", 1000)
    """
    found = derived(tmp_path, initialize)
    assert found["fp16.loss_scale_window"] == {"type": ["integer"], "default": 1000}
    assert found["fp16.min_loss_scale"] == {"type": None}


def test_both_branches_are_walked_whatever_the_config_says(tmp_path: Path) -> None:
    module = """
    def fixed(sparsity):
        return {"block": get_scalar_param(sparsity, "block", 16)}
    def random(sparsity):
        return {"seed": get_scalar_param(sparsity, "seed", 7)}
    def get_sparse_attention(param_dict):
        if "sparse_attention" in param_dict.keys():
            sparsity = param_dict["sparse_attention"]
            mode = sparsity["mode"] if "mode" in sparsity.keys() else "fixed"
            if mode == "fixed":
                return fixed(sparsity)
            elif mode == "random":
                return random(sparsity)
            else:
                raise NotImplementedError(mode)
    """
    found = derived(tmp_path, "self.sparse = get_sparse_attention(param_dict)", module)
    assert sorted(found) == [
        "sparse_attention",
        "sparse_attention.block",
        "sparse_attention.mode",
        "sparse_attention.seed",
    ]
    assert found["sparse_attention.mode"] == {"type": ["string"], "enum": ["fixed", "random"], "default": "fixed"}


@pytest.mark.parametrize(
    "getter",
    [
        'if "kind" in d.keys():\n        return d["kind"]\n    else:\n        return "fast"',
        'if "kind" in d:\n        return d["kind"]\n    return "fast"',
        'return d["kind"] if "kind" in d else "fast"',
        'kind = "fast"\n    if "kind" in d:\n        kind = d["kind"]\n    return kind',
    ],
    ids=["else", "what follows", "expression", "assigned before"],
)
def test_what_stands_for_an_absent_key_is_its_default(tmp_path: Path, getter: str) -> None:
    found = derived(tmp_path, "self.kind = kind(param_dict)", f"def kind(d):\n    {getter}\n")
    assert found == {"kind": {"type": ["string"], "default": "fast"}}


def test_different_defaults_of_two_readers_are_no_default(tmp_path: Path) -> None:
    initialize = 'self.on = param_dict.get("ckpt", False) is not False\nself.ckpt = param_dict.get("ckpt", None)'
    assert derived(tmp_path, initialize) == {"ckpt": {"type": None}}


def test_a_table_of_defaults_lists_keys(tmp_path: Path) -> None:
    module = 'DEFAULTS = {"profile": False, "num_params": None}'
    initialize = """
    info = {}
    for key, default_value in DEFAULTS.items():
        info[key] = get_scalar_param(param_dict["model_info"], key, default_value)
    """
    found = derived(tmp_path, initialize, module)
    assert found["model_info.profile"] == {"type": ["boolean"], "default": False}
    assert found["model_info.num_params"] == {"type": None, "default": None}


def test_defaults_that_a_section_is_copied_over_are_its_keys(tmp_path: Path) -> None:
    module = """
    def get_pipeline_config(param_dict):
        config = {"stages": "auto", "seed_layers": False}
        for key, val in param_dict.get("pipeline", {}).items():
            config[key] = val
        return config
    """
    pipe = """
    if self._config.pipeline.get('use_reentrant') is None:
        self._config.pipeline['use_reentrant'] = True
    self._config.pipeline["stages"]
    """
    assert derived(tmp_path, "self.pipeline = get_pipeline_config(param_dict)", module, pipe=pipe) == {
        "pipeline": {"type": ["object"], "unknownKeys": "ignore"},
        "pipeline.stages": {"type": ["string"], "default": "auto"},
        "pipeline.seed_layers": {"type": ["boolean"], "default": False},
        "pipeline.use_reentrant": {"type": None, "default": None},
    }


def test_what_code_adds_to_a_copied_section_is_not_a_key(tmp_path: Path) -> None:
    module = """
    def routing(param_dict):
        output = {"enabled": False}
        for key, val in param_dict["random_ltd"].items():
            output[key] = val
        return output
    """
    pipe = """
    self._config.routing["batch_size"] = 8
    self._config.routing["batch_size"]
    self._config.routing["layers"]
    """
    found = derived(tmp_path, "self.routing = routing(param_dict)", module, pipe=pipe)
    assert sorted(found) == ["random_ltd", "random_ltd.enabled", "random_ltd.layers"]


def test_a_section_under_any_name_is_written_with_a_star(tmp_path: Path) -> None:
    initialize = """
    for name in param_dict["metrics"]:
        metric = param_dict["metrics"][name]
        assert "min" in metric
        self.low = int(metric["min"])
    for key, group in param_dict["groups"].items():
        group.get("modules", ["x"])
    """
    assert derived(tmp_path, initialize) == {
        "groups": {"type": ["object"], "unknownKeys": "ignore"},
        "groups.*.modules": {"type": ["array"], "default": ["x"]},
        "metrics": {"type": ["object"], "unknownKeys": "ignore"},
        "metrics.*.min": {"type": ["integer"]},
    }


def test_conversions_say_the_type_where_no_default_does(tmp_path: Path) -> None:
    initialize = """
    self.a = bool(param_dict.get("a"))
    self.b = str(param_dict["b"]).lower()
    self.c = float(param_dict.get("c", 1))
    self.d = param_dict["d"].upper()
    """
    assert derived(tmp_path, initialize) == {
        "a": {"type": ["boolean", "null"], "default": None},
        "b": {"type": ["string"]},
        "c": {"type": ["number"], "default": 1},
        "d": {"type": ["string"]},
    }


def test_tests_of_the_type_add_to_the_type_of_the_default(tmp_path: Path) -> None:
    initialize = """
    keep = param_dict.get("keep", "auto")
    if not (isinstance(keep, list) and all(isinstance(n, str) for n in keep)):
        raise ValueError(keep)
    """
    assert derived(tmp_path, initialize) == {"keep": {"type": ["string", "array"], "default": "auto"}}


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ('if v not in ("a", "b"):\n    raise ValueError(v)', {"enum": ["a", "b"]}),
        ("if v is not None and v not in NAMES:\n    raise ValueError(v)", {"enum": ["a", "b"]}),
        ('assert v in NAMES, "no"', {"enum": ["a", "b"]}),
        ("assert v is None or v in NAMES", {"enum": ["a", "b"]}),
        ("if v in NAMES:\n    self.v = v\nelse:\n    raise ValueError(v)", {"enum": ["a", "b"]}),
        ('if v == "a":\n    return\nelif v == "b":\n    return\nraise ValueError(v)', {"enum": ["a", "b"]}),
        ("v = v.lower()\nif v not in NAMES:\n    raise ValueError(v)", {"enum": ["a", "b"], "ignoreCase": True}),
        ("Kind(v)", {"enum": ["a", "b"]}),
    ],
)
def test_values_that_alone_do_not_raise_are_an_enum(tmp_path: Path, check: str, expected: dict[str, object]) -> None:
    module = 'NAMES = ["a", "b"]\nclass Kind(Enum):\n    one = "a"\n    two = "b"\n'
    found = derived(tmp_path, f'v = param_dict["kind"]\n{check}', module)
    assert found == {"kind": {"type": ["string"], **expected}}


@pytest.mark.parametrize(
    "check",
    [
        "if self.on and v not in NAMES:\n    raise ValueError(v)",
        "if v not in NAMES:\n    logger.warning(v)",
        'if v == "a":\n    raise ValueError(v)',
        'if v == "a":\n    self.a = 1\nelif self.on:\n    self.a = 2\nelse:\n    raise ValueError(v)',
    ],
    ids=["only under a condition", "only warned about", "one value refused", "another condition in between"],
)
def test_other_checks_are_no_enum(tmp_path: Path, check: str) -> None:
    found = derived(tmp_path, f'v = param_dict.get("kind", "a")\n{check}', 'NAMES = ["a", "b"]')
    assert found == {"kind": {"type": ["string"], "default": "a"}}


def test_the_first_of_two_spellings_has_the_keys(tmp_path: Path) -> None:
    module = """
    def get_bfloat16_enabled(param_dict):
        for key in ["bf16", "bfloat16"]:
            if key in param_dict.keys():
                return get_scalar_param(param_dict[key], "enabled", False)
        return False
    """
    found = derived(tmp_path, "self.bf16 = get_bfloat16_enabled(param_dict)", module)
    assert sorted(found) == ["bf16", "bf16.enabled", "bfloat16"]
    assert found["bfloat16"]["aliasOf"] == "bf16"


def test_computed_values_have_no_keys(tmp_path: Path) -> None:
    assert derived(tmp_path, 'self.n = (param_dict["n"] * 2)["x"]\nlen(param_dict["m"])["y"]') == {
        "m": {"type": None},
        "n": {"type": None},
    }


def test_removed_keys_are_rejected_with_all_below_them(tmp_path: Path) -> None:
    module = """
    _REMOVED_TOP_LEVEL_CONFIG_KEYS = {"nebula": "gone", "amp": "gone, too"}
    _REMOVED_ZERO_CONFIG_KEYS = {"mics": "gone"}

    def _reject_removed_config_keys(param_dict):
        for key, message in _REMOVED_TOP_LEVEL_CONFIG_KEYS.items():
            if key in param_dict:
                raise ValueError(message)
        zero_config = param_dict.get("zero_optimization")
        if isinstance(zero_config, dict):
            for key, message in _REMOVED_ZERO_CONFIG_KEYS.items():
                if key in zero_config:
                    raise ValueError(message)
    """
    initialize = '_reject_removed_config_keys(param_dict)\nparam_dict.get("nebula", {}).get("enabled", False)'
    found = keys(release(tmp_path, module=module, initialize=initialize))
    source = "deepspeed/runtime/config.py"
    assert found["nebula"] == {"rejected": True, "table": "_REMOVED_TOP_LEVEL_CONFIG_KEYS", "source": source}
    assert found["zero_optimization.mics"]["table"] == "_REMOVED_ZERO_CONFIG_KEYS"
    assert sorted(found) == ["amp", "nebula", "zero_optimization", "zero_optimization.mics"]


def test_functions_inside_functions_are_walked(tmp_path: Path) -> None:
    module = """
    def get_groups(param_dict):
        def get_params(name, group, period=1):
            assert "start_bits" in group.keys(), name
            group["period"] = get_scalar_param(group, "period", period)
            return group
        for name in param_dict["groups"]:
            get_params(name, param_dict["groups"][name]["params"])
    """
    found = derived(tmp_path, "self.groups = get_groups(param_dict)", module)
    assert found["groups.*.params.start_bits"] == {"type": None}
    assert found["groups.*.params.period"] == {"type": ["integer"], "default": 1}


def test_a_function_that_calls_itself_is_walked_once(tmp_path: Path) -> None:
    module = """
    def outer(param_dict):
        def inner(section):
            section.get("depth", 1)
            return inner(section["next"])
        return inner(param_dict)
    """
    assert sorted(derived(tmp_path, "self.outer = outer(param_dict)", module)) == ["depth", "next"]


def test_tests_of_constants_are_decided(tmp_path: Path) -> None:
    initialize = """
    for name in ("layer_reduction", "pruning"):
        if "layer_reduction" in name:
            continue
        param_dict[name]["groups"]
    """
    assert sorted(derived(tmp_path, initialize)) == ["pruning", "pruning.groups"]


def test_a_name_that_a_loop_changes_decides_nothing(tmp_path: Path) -> None:
    initialize = """
    state = "first"
    for item in unknown():
        if state == "second":
            param_dict["later"]
        state = "second"
    """
    assert sorted(derived(tmp_path, initialize, "from other import unknown")) == ["later"]


def test_a_text_that_is_looked_for_in_a_value_is_no_key(tmp_path: Path) -> None:
    assert derived(tmp_path, 'self.dotted = "." in param_dict["name"]') == {"name": {"type": None}}
