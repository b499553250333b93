"""Pre-train a masked autoencoder: the loop in engine_pretrain.py, backward and step in util/misc.py."""

import argparse
from pathlib import Path

import models_mae
import torch
import util.misc as misc
from engine_pretrain import train_one_epoch
from util.misc import NativeScalerWithGradNormCount as NativeScaler


def get_args_parser():
    parser = argparse.ArgumentParser("MAE pre-training", add_help=False)
    parser.add_argument("--batch_size", default=4, type=int, help="Batch size per GPU")
    parser.add_argument("--epochs", default=3, type=int)
    parser.add_argument("--stop_epoch", default=-1, type=int, help="leave early, e.g. at the end of a time slot")
    parser.add_argument("--accum_iter", default=1, type=int, help="Accumulate gradient iterations")
    parser.add_argument("--lr", default=0.4, type=float)
    parser.add_argument("--min_lr", default=0.0, type=float)
    parser.add_argument("--warmup_epochs", default=1, type=int)
    parser.add_argument("--clip_grad", default=None, type=float, help="Clip gradient norm (default: None)")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--output_dir", default="./output_dir", help="path where to save")
    parser.add_argument("--resume", default="", help="resume from checkpoint")
    parser.add_argument("--start_epoch", default=0, type=int)
    parser.add_argument("--dist_url", default="env://", help="url used to set up distributed training")
    return parser


class Patches(torch.utils.data.Dataset):
    def __init__(self, n=72):
        g = torch.Generator().manual_seed(5)
        basis = torch.randn(6, 24, generator=g)
        self.x = torch.randn(n, 16, 6, generator=g) @ basis / 3
        self.mask = torch.rand(n, 16, generator=g) < 0.6
        self.mask[:, 0] = True

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.mask[i]


def main(args):
    misc.init_distributed_mode(args)
    device = torch.device(f"cuda:{args.gpu}" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(11)

    dataset_train = Patches()
    sampler_train = torch.utils.data.DistributedSampler(
        dataset_train, num_replicas=misc.get_world_size(), rank=misc.get_rank(), shuffle=True)
    data_loader_train = torch.utils.data.DataLoader(
        dataset_train, sampler=sampler_train, batch_size=args.batch_size, drop_last=True)

    model = models_mae.MaskedAutoencoder()
    model.to(device)
    model_without_ddp = model

    eff_batch_size = args.batch_size * args.accum_iter * misc.get_world_size()
    print(f"effective batch size: {eff_batch_size}")

    if args.distributed:
        model = torch.nn.parallel.DistributedDataParallel(
            model, device_ids=[args.gpu] if device.type == "cuda" else None)
        model_without_ddp = model.module

    optimizer = torch.optim.SGD(model_without_ddp.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    loss_scaler = NativeScaler(device.type, args.amp)
    misc.load_model(args=args, model_without_ddp=model_without_ddp, optimizer=optimizer, loss_scaler=loss_scaler)

    for epoch in range(args.start_epoch, args.epochs):
        if args.distributed:
            data_loader_train.sampler.set_epoch(epoch)
        train_stats = train_one_epoch(model, data_loader_train, optimizer, device, epoch, loss_scaler, args=args)
        if args.output_dir:
            misc.save_model(args=args, model=model, model_without_ddp=model_without_ddp, optimizer=optimizer,
                            loss_scaler=loss_scaler, epoch=epoch)
        if misc.is_main_process():
            print(f"epoch {epoch} train_loss {train_stats['loss']:.9f}")
        if epoch == args.stop_epoch:
            break


if __name__ == "__main__":
    args = get_args_parser().parse_args()
    if args.output_dir:
        Path(args.output_dir).mkdir(parents=True, exist_ok=True)
    main(args)
