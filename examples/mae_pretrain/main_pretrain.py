"""Masked-autoencoder pre-training, split over several files as such repositories are.

    torchrun --nproc_per_node=2 main_pretrain.py --accum_iter 2
"""
import argparse
import json
import os
import time
from pathlib import Path

import torch
import util.misc as misc
from engine_pretrain import train_one_epoch
from models_mae import MaskedAutoencoder
from torch.utils.data import DataLoader, TensorDataset
from util.misc import NativeScalerWithGradNormCount as NativeScaler


def get_args_parser():
    parser = argparse.ArgumentParser("MAE pre-training", add_help=False)
    parser.add_argument("--batch_size", default=4, type=int,
                        help="Batch size per GPU (effective batch size is batch_size * accum_iter * # gpus)")
    parser.add_argument("--epochs", default=4, type=int)
    parser.add_argument("--stop_epoch", default=0, type=int, help="leave after this many epochs (0: never)")
    parser.add_argument("--accum_iter", default=2, type=int,
                        help="Accumulate gradient iterations (for increasing the effective batch size)")
    parser.add_argument("--mask_ratio", default=0.5, type=float, help="Masking ratio (share of removed patches)")
    parser.add_argument("--clip_grad", default=0.5, type=float)
    parser.add_argument("--weight_decay", type=float, default=0.05)
    parser.add_argument("--lr", type=float, default=None, metavar="LR", help="learning rate (absolute lr)")
    parser.add_argument("--blr", type=float, default=6e-2, metavar="LR",
                        help="base learning rate: absolute_lr = base_lr * total_batch_size / 256")
    parser.add_argument("--min_lr", type=float, default=0.0)
    parser.add_argument("--warmup_epochs", type=int, default=1)
    parser.add_argument("--output_dir", default="./output_dir", help="path where to save, empty for no saving")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--resume", default="", help="resume from checkpoint")
    parser.add_argument("--start_epoch", default=0, type=int, metavar="N")
    return parser


def build_dataset(seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.linspace(0, 3.14159, 16)
    amplitude = torch.rand(64, 3, 1, 1, generator=g)
    angle = torch.rand(64, 1, 1, 1, generator=g) * 4
    images = amplitude * torch.sin(angle * x.view(1, 1, 16, 1) + (4 - angle) * x.view(1, 1, 1, 16))
    return TensorDataset(images + 0.1 * torch.randn(64, 3, 16, 16, generator=g))


def main(args):
    misc.init_distributed_mode(args)
    device = torch.device(args.device)
    # fix the seed for reproducibility
    torch.manual_seed(args.seed + misc.get_rank())

    dataset_train = build_dataset()
    sampler_train = torch.utils.data.DistributedSampler(
        dataset_train, num_replicas=misc.get_world_size(), rank=misc.get_rank(), shuffle=True)
    data_loader_train = DataLoader(dataset_train, sampler=sampler_train, batch_size=args.batch_size, drop_last=True)

    model = MaskedAutoencoder()
    model.to(device)
    model_without_ddp = model
    eff_batch_size = args.batch_size * args.accum_iter * misc.get_world_size()
    if args.lr is None:  # only base_lr is specified
        args.lr = args.blr * eff_batch_size / 256
    print("actual lr: %.2e" % args.lr)
    print("accumulate grad iterations: %d" % args.accum_iter)

    if args.distributed:
        model = torch.nn.parallel.DistributedDataParallel(
            model, device_ids=[args.gpu] if device.type == "cuda" else None)
        model_without_ddp = model.module

    decay = [p for p in model_without_ddp.parameters() if p.ndim > 1]
    no_decay = [p for p in model_without_ddp.parameters() if p.ndim <= 1]
    param_groups = [{"params": no_decay, "weight_decay": 0.0}, {"params": decay, "weight_decay": args.weight_decay}]
    optimizer = torch.optim.AdamW(param_groups, lr=args.lr, betas=(0.9, 0.95))
    loss_scaler = NativeScaler()

    misc.load_model(args=args, model_without_ddp=model_without_ddp, optimizer=optimizer, loss_scaler=loss_scaler)

    print(f"Start training for {args.epochs} epochs")
    start_time = time.time()
    for epoch in range(args.start_epoch, args.epochs):
        if args.distributed:
            data_loader_train.sampler.set_epoch(epoch)
        train_stats = train_one_epoch(model, data_loader_train, optimizer, device, epoch, loss_scaler, args=args)
        if args.output_dir:
            misc.save_model(args=args, model=model, model_without_ddp=model_without_ddp, optimizer=optimizer,
                            loss_scaler=loss_scaler, epoch=epoch)
        if args.output_dir and misc.is_main_process():
            with open(os.path.join(args.output_dir, "log.txt"), mode="a", encoding="utf-8") as f:
                f.write(json.dumps({**{f"train_{k}": v for k, v in train_stats.items()}, "epoch": epoch}) + "\n")
        if epoch + 1 == args.stop_epoch:
            break
    print("Training time %.1f" % (time.time() - start_time))


if __name__ == "__main__":
    arguments = get_args_parser().parse_args()
    if arguments.output_dir:
        Path(arguments.output_dir).mkdir(parents=True, exist_ok=True)
    main(arguments)
