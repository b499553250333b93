from __future__ import annotations

from pathlib import Path

from dsmigrate.derivation.classes import optimizers, schedulers
from tests.derivation.fake import release

BUILD = """
def get_optimizer_configuration(self, parameters):
    if self.zero_use_cpu_optimizer():
        CPUAdam = ZenFlowCPUAdam if self.zenflow else DeepSpeedCPUAdam
        return CPUAdam
    return torch.optim.AdamW

def _configure_basic_optimizer(self, model_parameters):
    if self.optimizer_name() in [ADAM_OPTIMIZER, LAMB_OPTIMIZER]:
        if self.optimizer_name() == LAMB_OPTIMIZER:
            try:
                from deepspeed.ops.lamb import FusedLamb
            except ImportError:
                raise
            optimizer = FusedLamb(model_parameters)
        else:
            optimizer = self.get_optimizer_configuration({})(model_parameters)
    else:
        optimizer = getattr(torch.optim, self.optimizer_name())(model_parameters)
    return optimizer
"""
LAMB = """
class FusedLamb(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), *, amsgrad=False, **kwargs):
        pass

class Helper:
    def __init__(self, chunk_size):
        pass
"""


def test_each_name_has_the_classes_that_the_engine_builds_for_it(tmp_path: Path) -> None:
    found = optimizers(release(tmp_path, methods=BUILD, files={"ops/lamb/fused_lamb.py": LAMB}))
    assert {name: facts["classes"] for name, facts in found["names"].items()} == {
        "adam": ["DeepSpeedCPUAdam", "ZenFlowCPUAdam", "torch.optim.AdamW"],
        "lamb": ["FusedLamb"],
    }


def test_parameters_are_those_of_the_constructor_without_what_the_engine_gives(tmp_path: Path) -> None:
    found = optimizers(release(tmp_path, methods=BUILD, files={"ops/lamb/fused_lamb.py": LAMB}))
    assert found["classes"] == {
        "FusedLamb": {
            "params": {"lr": {"default": 0.001}, "betas": {"default": [0.9, 0.999]}, "amsgrad": {"default": False}},
            "anyParam": True,
            "source": "deepspeed/ops/lamb/fused_lamb.py",
        }
    }


def test_schedulers_are_those_of_the_list_with_constants_as_defaults(tmp_path: Path) -> None:
    text = """
    LOG = 'log'
    WARMUP = 'WarmupLR'
    COSINE = 'WarmupCosineLR'
    VALID_LR_SCHEDULES = [WARMUP, COSINE]

    class WarmupLR(object):
        def __init__(self, optimizer: Optimizer, warmup_max_lr: float = None, warmup_type=LOG):
            pass

    class WarmupCosineLR(object):
        def __init__(self, optimizer, total_num_steps, last_batch_iteration=-1):
            pass

    class Unlisted(object):
        def __init__(self, optimizer):
            pass
    """
    found = schedulers(release(tmp_path, files={"runtime/lr_schedules.py": text}))
    assert {name: facts["params"] for name, facts in found["classes"].items()} == {
        "WarmupLR": {"warmup_max_lr": {"default": None}, "warmup_type": {"default": "log"}},
        "WarmupCosineLR": {"total_num_steps": {}, "last_batch_iteration": {"default": -1}},
    }
    assert sorted(found["names"]) == ["WarmupCosineLR", "WarmupLR"]
