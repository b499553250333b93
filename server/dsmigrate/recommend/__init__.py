"""Which ZeRO stage and offload fit a model and its machines, fastest first, with a config for the choice.

What fits is what ``memory`` says of the very config; the order is by published round figures of links and processors.
"""

from dsmigrate.recommend.choose import Candidate, Recommendation, recommend, relaxed
from dsmigrate.recommend.request import Request

__all__ = ["Candidate", "Recommendation", "Request", "recommend", "relaxed"]
