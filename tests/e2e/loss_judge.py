"""Measures what the loss of a language model holds at its peak: bytes of live storages for each token and word."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers.loss.loss_utils import ForCausalLMLoss

TOKENS, WORDS, HIDDEN, CHUNKS = 512, 4096, 8, 8


class Alive(TorchDispatchMode):
    """Counts the bytes of the storages that operations make, while they are alive."""

    def __init__(self) -> None:
        super().__init__()
        self._there: set[int] = set()
        self._now = self.most = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        made = function(*arguments, **(named or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in self._there:
                storage = tensor.untyped_storage()
                self._there.add(storage._cdata)
                self._now += storage.nbytes()
                self.most = max(self.most, self._now)
                weakref.finalize(storage, self._freed, storage._cdata, storage.nbytes())
        return made

    def _freed(self, key: int, size: int) -> None:
        self._there.discard(key)
        self._now -= size


def upcast(hidden: Any, head: Any, labels: Any) -> Any:
    """As a model of Transformers: the logits are part of what it returns."""
    logits = hidden @ head.t()
    return ForCausalLMLoss(logits, labels, WORDS), logits


def shifted(hidden: Any, head: Any, labels: Any) -> Any:
    """As a model of Transformers 4.40 (models/llama/modeling_llama.py:LlamaForCausalLM.forward)."""
    logits = (hidden @ head.t()).float()
    shift = logits[..., :-1, :].contiguous().view(-1, WORDS)
    return functional.cross_entropy(shift, labels[..., 1:].contiguous().view(-1)), logits


def plain(hidden: Any, head: Any, labels: Any) -> Any:
    """As a script that hands the logits to torch."""
    logits = hidden @ head.t()
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits


def chunked(hidden: Any, head: Any, labels: Any) -> Any:
    """As torchtune (modules/loss/ce_chunked_output_loss.py:CEWithChunkedOutputLoss)."""
    logits = [chunk @ head.t() for chunk in hidden.chunk(CHUNKS, 1)]
    pairs = zip(logits, labels.chunk(CHUNKS, 1), strict=True)
    each = [functional.cross_entropy(one.flatten(0, 1).float(), want.flatten(), reduction="sum") for one, want in pairs]
    return sum(each[1:], each[0]), None


def peak(job: dict[str, Any]) -> dict[str, Any]:
    """Return the bytes for each token and word, forward and backward together."""
    kinds: dict[str, Callable[[Any, Any, Any], Any]] = {
        "upcast": upcast, "shifted": shifted, "plain": plain, "chunked": chunked,
    }  # fmt: skip
    head = torch.randn(WORDS, HIDDEN, dtype=getattr(torch, job["format"]))
    hidden = torch.randn(1, TOKENS, HIDDEN, dtype=head.dtype, requires_grad=True)
    with Alive() as alive:
        loss, _logits = kinds[job["loss"]](hidden, head, torch.randint(0, WORDS, (1, TOKENS)))
        loss.backward()
    return {"bytes": alive.most / TOKENS / WORDS}
