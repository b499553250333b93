"""Fine-tuning in the shape of the early BERT scripts: one args namespace, utils, and a train function of its own module."""

import argparse

import torch
from modeling import TinyEncoder
from trainer import train
from utils import init_distributed, set_seed, token_data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--per_gpu_train_batch_size", type=int, default=5)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=2)
    parser.add_argument("--learning_rate", type=float, default=4e-3)
    parser.add_argument("--weight_decay", type=float, default=0.01)
    parser.add_argument("--max_grad_norm", type=float, default=0.7)
    parser.add_argument("--warmup_steps", type=int, default=3)
    parser.add_argument("--num_train_epochs", type=int, default=3)
    args = parser.parse_args()
    args.device = init_distributed(args)
    set_seed(args)
    model = TinyEncoder().to(args.device)
    global_step, average = train(args, token_data(), model)
    if args.local_rank in (-1, 0):
        print(f"global_step = {global_step}, average loss = {average:.9f}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
