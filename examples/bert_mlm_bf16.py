#!/usr/bin/env python
# coding=utf-8
"""Masked-language-model pre-training with bf16 autocast, linear warm-up and gradient clipping."""

import argparse
import logging
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

logger = logging.getLogger(__name__)

VOCAB_SIZE = 96
MASK_ID = 1
IGNORE_INDEX = -100


def parse_args():
    parser = argparse.ArgumentParser(description="Pre-train a small encoder with masked language modelling")
    parser.add_argument("--per_device_train_batch_size", type=int, default=4)
    parser.add_argument("--max_seq_length", type=int, default=24)
    parser.add_argument("--learning_rate", type=float, default=4e-3)
    parser.add_argument("--weight_decay", type=float, default=0.05)
    parser.add_argument("--num_train_epochs", type=int, default=2)
    parser.add_argument("--num_warmup_steps", type=int, default=4)
    parser.add_argument("--max_grad_norm", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args()


class Encoder(nn.Module):
    def __init__(self, vocab_size, hidden_size=32, num_layers=2, num_heads=4, max_len=64):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, hidden_size)
        self.position_embeddings = nn.Embedding(max_len, hidden_size)
        self.norm = nn.LayerNorm(hidden_size)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(hidden_size, num_heads, 4 * hidden_size, dropout=0.0, activation="gelu",
                                       batch_first=True, norm_first=True)
            for _ in range(num_layers)
        )
        self.transform = nn.Linear(hidden_size, hidden_size)
        self.decoder = nn.Linear(hidden_size, vocab_size)

    def forward(self, input_ids):
        positions = torch.arange(input_ids.size(1), device=input_ids.device)
        hidden = self.norm(self.word_embeddings(input_ids) + self.position_embeddings(positions))
        for layer in self.layers:
            hidden = layer(hidden)
        return self.decoder(torch.nn.functional.gelu(self.transform(hidden)))


def build_dataset(num_examples, seq_len, seed):
    """Sequences that follow a fixed successor table, with 15 % of the tokens masked."""
    g = torch.Generator().manual_seed(seed)
    table = torch.randperm(VOCAB_SIZE - 2, generator=g) + 2
    tokens = torch.empty(num_examples, seq_len, dtype=torch.long)
    tokens[:, 0] = torch.randint(2, VOCAB_SIZE, (num_examples,), generator=g)
    for t in range(1, seq_len):
        tokens[:, t] = table[tokens[:, t - 1] - 2]
    masked = torch.rand(tokens.shape, generator=g) < 0.15
    masked[:, 3] = True
    labels = torch.where(masked, tokens, torch.full_like(tokens, IGNORE_INDEX))
    inputs = torch.where(masked, torch.full_like(tokens, MASK_ID), tokens)
    return TensorDataset(inputs, labels)


def main():
    args = parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    use_cuda = torch.cuda.is_available()
    if use_cuda:
        torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank) if use_cuda else torch.device("cpu")
    dist.init_process_group("nccl" if use_cuda else "gloo")
    is_main_process = dist.get_rank() == 0
    logging.basicConfig(format="%(asctime)s - %(levelname)s - %(message)s",
                        level=logging.INFO if is_main_process else logging.WARNING)

    torch.manual_seed(args.seed)
    model = Encoder(VOCAB_SIZE).to(device)
    no_decay = ["bias", "norm"]
    optimizer_grouped_parameters = [
        {
            "params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)],
            "weight_decay": args.weight_decay,
        },
        {
            "params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)],
            "weight_decay": 0.0,
        },
    ]
    optimizer = torch.optim.AdamW(optimizer_grouped_parameters, lr=args.learning_rate)

    train_dataset = build_dataset(64, args.max_seq_length, args.seed)
    train_sampler = DistributedSampler(train_dataset, shuffle=True, seed=args.seed)
    train_dataloader = DataLoader(train_dataset, sampler=train_sampler,
                                  batch_size=args.per_device_train_batch_size)
    max_train_steps = args.num_train_epochs * len(train_dataloader)

    def lr_lambda(current_step):
        if current_step < args.num_warmup_steps:
            return (current_step + 1) / args.num_warmup_steps
        return max(0.0, (max_train_steps - current_step) / max(1, max_train_steps - args.num_warmup_steps))

    lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda)
    model = DDP(model, device_ids=[local_rank] if use_cuda else None)
    loss_fct = nn.CrossEntropyLoss(ignore_index=IGNORE_INDEX)

    logger.info("***** Running training *****")
    logger.info("  Num examples = %d", len(train_dataset))
    logger.info("  Total optimization steps = %d", max_train_steps)
    completed_steps = 0
    for epoch in range(args.num_train_epochs):
        model.train()
        train_sampler.set_epoch(epoch)
        for input_ids, labels in train_dataloader:
            input_ids, labels = input_ids.to(device), labels.to(device)
            with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
                logits = model(input_ids)
                loss = loss_fct(logits.view(-1, VOCAB_SIZE), labels.view(-1))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            completed_steps += 1
            logger.info("epoch %d step %d loss %.9f lr %.6e", epoch, completed_steps, loss.item(),
                        optimizer.param_groups[0]["lr"])

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
