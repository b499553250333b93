from __future__ import annotations

from pathlib import Path

from dsmigrate.derivation.run import run_config_code
from tests.derivation.fake import keys, release


def test_keys_that_initialize_reads_are_found(tmp_path: Path) -> None:
    init = """
    def initialize(args=None, model=None, config=None):
        if "sequence_parallel_size" in config and "data_parallel_size" in config:
            size = config["data_parallel_size"]
    """
    found = keys(release(tmp_path, files={"__init__.py": init}))
    assert sorted(found) == ["data_parallel_size", "sequence_parallel_size"]


def test_a_section_is_followed_into_the_classes_that_read_it_at_run_time(tmp_path: Path) -> None:
    scheduler = """
    class BaseScheduler(object):
        def __init__(self):
            self.state = {}
        def get_value(self):
            return self.state["schedule_config"]["require_steps"]

    class RandomLTDScheduler(BaseScheduler):
        def __init__(self, config):
            super().__init__()
            self.state["schedule_config"] = config["schedule_config"]
    """
    methods = """
    def random_ltd_config(self):
        return self._config.random_ltd

    def configure(self):
        self.scheduler = RandomLTDScheduler(self.random_ltd_config())
    """
    found = keys(
        release(
            tmp_path,
            initialize='self.random_ltd = param_dict["random_ltd"]',
            engine="from deepspeed.runtime.data_pipeline.data_routing.scheduler import RandomLTDScheduler",
            methods=methods,
            files={
                "runtime/data_pipeline/__init__.py": "",
                "runtime/data_pipeline/data_routing/__init__.py": "",
                "runtime/data_pipeline/data_routing/scheduler.py": scheduler,
            },
        )
    )
    assert "random_ltd.schedule_config.require_steps" in found
    assert found["random_ltd.schedule_config"]["source"].endswith("data_routing/scheduler.py")  # type: ignore[attr-defined]


def test_a_package_gives_what_its_init_imports_from_config_modules(tmp_path: Path) -> None:
    found = keys(
        release(
            tmp_path,
            module="from .tensor_parallel import get_tensor_parallel_config",
            initialize="self.tp = get_tensor_parallel_config(param_dict)",
            files={
                "runtime/tensor_parallel/__init__.py": """
                from .config import get_tensor_parallel_config
                from .tp_manager import TpTrainingManager
                """,
                "runtime/tensor_parallel/config.py": """
                def get_tensor_parallel_config(ds_config):
                    return ds_config.get("tensor_parallel", {}).get("autotp_size", 0)
                """,
                "runtime/tensor_parallel/tp_manager.py": "raise RuntimeError('only config code runs')\n",
            },
        )
    )
    assert found["tensor_parallel.autotp_size"]["default"] == 0


def test_what_the_engine_takes_out_of_the_parameters_of_the_optimizer_is_no_key_of_the_config(tmp_path: Path) -> None:
    methods = """
    def build(self):
        parameters = dict(self._config.optimizer_params or {})
        parameters.pop("torch_adam", False)
        parameters.get("lr")
    """
    initialize = 'self.optimizer_params = param_dict["optimizer"]["params"]\nself.optimizer_params["max_grad_norm"]'
    told = run_config_code("0.0.1", release(tmp_path, initialize=initialize, methods=methods))
    assert sorted(told["keys"]) == ["optimizer", "optimizer.params", "optimizer.params.max_grad_norm"]
    assert told["engine"] == {"torch_adam": {"default": False, "source": "deepspeed/runtime/engine.py"}}
