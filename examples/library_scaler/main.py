"""Train a small image classifier with the scaler of the timm library, which runs backward, clipping and step by itself."""
import argparse
import os
from contextlib import suppress
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from timm.utils import NativeScaler
from torch.utils.data import DataLoader, DistributedSampler

from engine import train_one_epoch
from models import Mixer, Blobs


def get_args_parser():
    parser = argparse.ArgumentParser("Mixer training", add_help=False)
    parser.add_argument("--batch-size", default=8, type=int)
    parser.add_argument("--epochs", default=3, type=int)
    parser.add_argument("--stop-epoch", default=-1, type=int)
    parser.add_argument("--clip-grad", default=None, type=float, metavar="NORM")
    parser.add_argument("--update-freq", default=1, type=int, help="batches per optimizer step")
    parser.add_argument("--lr", default=0.05, type=float)
    parser.add_argument("--amp", action="store_true", help="train in fp16 with autocast")
    parser.add_argument("--output-dir", default="output_dir")
    parser.add_argument("--resume", default="")
    return parser


def main(args):
    use_cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if use_cuda else "gloo", init_method="env://")
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device(f"cuda:{local_rank}" if use_cuda else "cpu")
    torch.manual_seed(11)

    dataset = Blobs()
    sampler = DistributedSampler(dataset, shuffle=True)
    data_loader = DataLoader(dataset, sampler=sampler, batch_size=args.batch_size, drop_last=True)

    model = Mixer().to(device)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank] if use_cuda else None)
    model_without_ddp = model.module
    optimizer = torch.optim.SGD(model_without_ddp.parameters(), lr=args.lr, momentum=0.9)
    amp_autocast, loss_scaler = suppress, None
    if args.amp:
        amp_autocast = partial(torch.autocast, device_type=device.type, dtype=torch.float16)
        loss_scaler = NativeScaler(device=device.type)
    lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)

    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu", weights_only=False)
        model_without_ddp.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        lr_scheduler.load_state_dict(checkpoint["lr_scheduler"])
        start_epoch = checkpoint["epoch"] + 1
        if loss_scaler is not None:
            loss_scaler.load_state_dict(checkpoint[loss_scaler.state_dict_key])

    output_dir = Path(args.output_dir)
    output_dir.mkdir(exist_ok=True)
    for epoch in range(start_epoch, args.epochs):
        sampler.set_epoch(epoch)
        train_one_epoch(model, data_loader, optimizer, device, epoch, amp_autocast, loss_scaler, args)
        lr_scheduler.step()
        if dist.get_rank() == 0:
            state = {
                "model": model_without_ddp.state_dict(),
                "optimizer": optimizer.state_dict(),
                "lr_scheduler": lr_scheduler.state_dict(),
                "epoch": epoch,
            }
            if loss_scaler is not None:
                state[loss_scaler.state_dict_key] = loss_scaler.state_dict()
            torch.save(state, output_dir / "checkpoint.pth")
        if epoch == args.stop_epoch:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main(get_args_parser().parse_args())
