"""Shares samples among the ranks as ``dsmigrate recommend`` tells: prints the losses with and without it, as JSON.

``ds_config.json`` has ``sequence_parallel_size``; without it a step has one micro-batch, of as many samples.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import deepspeed
import torch
from deepspeed.runtime.sequence_parallel.ulysses_sp import UlyssesSPAttentionHF, UlyssesSPDataLoaderAdapter
from torch.distributed.nn.functional import all_gather
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM

STEPS, TOKENS, WORDS = 4, 32, 64


def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, attn_implementation="sdpa",
    )  # fmt: skip
    return LlamaForCausalLM(shape)


def samples(rank: int, ranks: int) -> list[dict[str, torch.Tensor]]:
    drawn = torch.randint(0, WORDS, (STEPS * ranks, TOKENS), generator=torch.Generator().manual_seed(1))
    place = torch.arange(TOKENS)
    return [{"input_ids": one, "position_ids": place, "labels": one} for one in drawn[rank::ranks]]


def train(config: dict[str, Any], *, ranks: int) -> list[float]:
    """Return the loss of each optimizer step, over all its samples."""
    config, net, rank = copy.deepcopy(config), model(), torch.distributed.get_rank()
    split = int(config.get("sequence_parallel_size", 1))
    loader: Any = DataLoader(samples(rank, ranks), batch_size=1)
    more: dict[str, Any] = {}
    if split > 1:
        mpu = UlyssesSPAttentionHF.register_with_transformers(net, "sdpa", split, 1)
        group = mpu.get_sequence_parallel_group()
        more["mpu"] = mpu
        loader = UlyssesSPDataLoaderAdapter(loader, mpu.get_sequence_parallel_rank(), group, split, torch.device("cpu"))
    engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config, **more)
    assert engine.train_batch_size() == ranks, engine.train_batch_size()
    losses, told = [], 0.0
    for batch in loader:
        if split == 1:
            loss = engine(**batch).loss
        else:
            labels = batch.pop("shift_labels")
            logits = engine(**batch).logits
            own = torch.nn.functional.cross_entropy(logits.view(-1, WORDS).float(), labels.view(-1), reduction="sum")
            count = (labels != -100).sum().float()
            loss = sum(all_gather(own, group=group)) / sum(all_gather(count, group=group))
        engine.backward(loss)
        mean = loss.detach().clone()
        torch.distributed.all_reduce(mean)
        told += float(mean) / ranks / engine.gradient_accumulation_steps()
        if engine.is_gradient_accumulation_boundary():
            losses.append(told)
            told = 0.0
        engine.step()
    return losses


def main() -> None:
    deepspeed.init_distributed("gloo")
    ranks = torch.distributed.get_world_size()
    config = json.loads(Path("ds_config.json").read_text(encoding="utf-8"))
    whole = {name: value for name, value in config.items() if name != "sequence_parallel_size"}
    whole["gradient_accumulation_steps"] = 1
    found = {"whole": train(whole, ranks=ranks), "split": train(config, ranks=ranks)}
    if torch.distributed.get_rank() == 0:
        print("FOUND", json.dumps(found))


main()
