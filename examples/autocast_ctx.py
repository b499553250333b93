"""Sequence-to-sequence toy (reverse the digits) with a precision context that is chosen once."""

import argparse
import os
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

PAD, BOS, DIGITS = 10, 11, 12


class ReverseDigits(Dataset):
    def __init__(self, n, length=10, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.source = torch.randint(0, 10, (n, length), generator=g)

    def __len__(self):
        return self.source.size(0)

    def __getitem__(self, i):
        src = self.source[i]
        tgt = src.flip(0)
        return src, torch.cat([torch.tensor([BOS]), tgt[:-1]]), tgt


class Seq2Seq(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.tokens = nn.Embedding(DIGITS, dim, padding_idx=PAD)
        self.positions = nn.Parameter(torch.randn(16, dim) * 0.1)
        self.encoder = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True)
        self.decoder = nn.TransformerDecoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True)
        self.generator = nn.Linear(dim, 10)

    def embed(self, ids):
        return self.tokens(ids) + self.positions[: ids.size(1)]

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1), device=tgt.device)
        memory = self.encoder(self.embed(src))
        return self.generator(self.decoder(self.embed(tgt), memory, tgt_mask=mask))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="bf16")
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--grad-clip", type=float, default=0.6)
    args = parser.parse_args()

    use_cuda = torch.cuda.is_available()
    if use_cuda:
        local_rank = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(local_rank)
        device = torch.device("cuda", local_rank)
        dist.init_process_group("nccl")
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    rank = dist.get_rank()

    torch.manual_seed(99)
    seq2seq = Seq2Seq().to(device)
    seq2seq = DDP(seq2seq, device_ids=[device.index] if use_cuda else None)
    optim = torch.optim.SGD(seq2seq.parameters(), lr=args.lr, momentum=0.9)
    # full precision needs no context
    ctx = nullcontext() if args.precision == "fp32" else torch.autocast(device.type, dtype=torch.bfloat16)

    data = ReverseDigits(96, seed=4)
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)

    step, epoch = 0, 0
    while step < args.steps:
        sampler.set_epoch(epoch)
        for src, tgt_in, tgt_out in loader:
            src, tgt_in, tgt_out = src.to(device), tgt_in.to(device), tgt_out.to(device)
            # square-root warm-up, then constant
            for group in optim.param_groups:
                group["lr"] = args.lr * min(1.0, ((step + 1) / 6) ** 0.5)
            with ctx:
                logits = seq2seq(src, tgt_in)
                loss = F.cross_entropy(logits.reshape(-1, 10), tgt_out.reshape(-1))
            optim.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(seq2seq.parameters(), args.grad_clip)
            optim.step()
            step += 1
            if rank == 0:
                print(f"step {step} | loss {loss.item():.9f}", flush=True)
            if step >= args.steps:
                break
        epoch += 1

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
