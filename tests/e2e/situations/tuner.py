"""The search of ``deepspeed --autotuning tune``, whose experiments are not trained but given their results."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from deepspeed.autotuning import autotuner
from deepspeed.autotuning.scheduler import ResourceManager

from tests.e2e.situations.script import Config

MODEL = {"num_params": 1000, "activation_mem_per_gpu": 2**20}
FASTEST = 4
"""The micro-batch size with the best throughput."""
MOST = 32
"""The largest micro-batch size that runs."""


def run(config: Config) -> None:
    """Search."""
    autotuner.tabulate = lambda *_, **__: ""  # only prints
    ResourceManager.run = finish
    Path("config.json").write_text(json.dumps(config), encoding="utf-8")
    arguments = Namespace(
        user_args=["--deepspeed_config", "config.json"],
        user_script="train.py",
        num_nodes=1,
        num_gpus=1,
        hostfile="",
        master_port=0,
    )
    search = autotuner.Autotuner(arguments, {"localhost": [0]})
    search.tune()
    search.print_tuning_results()
    if not search.records:
        raise RuntimeError("nothing was searched")


def finish(manager: ResourceManager) -> None:
    """End each experiment that waits, as a job of the cluster would: with its metrics, and facts of the model."""
    while manager.experiment_queue:
        experiment = manager.experiment_queue.pop(0)
        folder = Path(experiment["result_dir"])
        folder.mkdir(parents=True, exist_ok=True)
        settings = experiment["ds_config"]
        size = settings.get("train_micro_batch_size_per_gpu", 1)
        metrics = {"throughput": 100 - abs(size - FASTEST), "latency": 1.0, "FLOPS_per_gpu": 1.0}
        if size <= MOST:
            Path(settings["autotuning"]["metric_path"]).write_text(json.dumps(metrics), encoding="utf-8")
        (folder / "model_info.json").write_text(json.dumps(MODEL), encoding="utf-8")
        manager.finished_experiments[experiment["exp_id"]] = (experiment, None)
