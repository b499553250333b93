"""What a config takes: bytes on the GPU, on the host and on NVMe, and what GPUs send each other in a step.

``usage`` and ``traffic`` look at one config as rules do, with the number of parameters and of GPUs where they are
known. They follow DeepSpeed 0.19.8, and older releases where these do something else. Each part says how sure it is:
exact (the source allocates it so), at most, or about. Activations, temporary tensors of kernels, the CUDA context and
what the allocator keeps back are nobody's to know from a config, and in none of the figures.
"""

from dsmigrate.memory.formula import text
from dsmigrate.memory.model import STATES, Model, Over, Part, Place, Surety, Usage, What, When
from dsmigrate.memory.scene import model_of, ranks_of
from dsmigrate.memory.traffic import Collective, Traffic, Transfer, traffic
from dsmigrate.memory.usage import kept_gathered, sub_groups, usage

__all__ = [
    "STATES",
    "Collective",
    "Model",
    "Over",
    "Part",
    "Place",
    "Surety",
    "Traffic",
    "Transfer",
    "Usage",
    "What",
    "When",
    "kept_gathered",
    "model_of",
    "ranks_of",
    "sub_groups",
    "text",
    "traffic",
    "usage",
]
