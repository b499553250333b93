# Detection-style training script: the optimizer is built after the model has been wrapped, from parameter groups
# that separate the backbone from the head and biases and norms from weights.
import argparse
import datetime
import os
import random
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def get_args_parser():
    parser = argparse.ArgumentParser("Set transformer detector", add_help=False)
    parser.add_argument("--lr", default=2e-3, type=float)
    parser.add_argument("--lr_backbone", default=4e-4, type=float)
    parser.add_argument("--batch_size", default=4, type=int)
    parser.add_argument("--weight_decay", default=1e-1, type=float)
    parser.add_argument("--epochs", default=3, type=int)
    parser.add_argument("--lr_drop", default=2, type=int)
    parser.add_argument("--clip_max_norm", default=1.2, type=float, help="gradient clipping max norm")
    parser.add_argument("--bbox_loss_coef", default=5.0, type=float)
    parser.add_argument("--output_dir", default="", help="path where to save, empty for no saving")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", default=42, type=int)
    parser.add_argument("--dist_url", default="env://", help="url used to set up distributed training")
    return parser


class Detector(nn.Module):
    """A convolutional backbone whose features a few object queries attend to."""

    def __init__(self, queries=3, dim=32, classes=4):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 12, 3, stride=2, padding=1), nn.GroupNorm(3, 12), nn.ReLU(),
            nn.Conv2d(12, dim, 3, stride=2, padding=1), nn.ReLU())
        self.query_embed = nn.Embedding(queries, dim)
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.class_embed = nn.Linear(dim, classes)
        self.bbox_embed = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 4))

    def forward(self, samples):
        memory = self.backbone(samples).flatten(2).transpose(1, 2)
        queries = self.query_embed.weight.unsqueeze(0).expand(samples.size(0), -1, -1)
        hs = self.norm(queries + self.attn(queries, memory, memory, need_weights=False)[0])
        return {"pred_logits": self.class_embed(hs), "pred_boxes": self.bbox_embed(hs).sigmoid()}


class SetCriterion(nn.Module):
    def __init__(self, weight_dict):
        super().__init__()
        self.weight_dict = weight_dict

    def forward(self, outputs, targets):
        return {
            "loss_ce": nn.functional.cross_entropy(outputs["pred_logits"].flatten(0, 1), targets["labels"].flatten()),
            "loss_bbox": nn.functional.l1_loss(outputs["pred_boxes"], targets["boxes"]),
        }


class SyntheticCoco(Dataset):
    def __init__(self, n=48):
        g = torch.Generator().manual_seed(31)
        self.labels = torch.randint(0, 4, (n, 3), generator=g)
        self.boxes = torch.rand(n, 3, 4, generator=g)
        colour = torch.randn(4, 3, generator=g)
        tint = colour[self.labels].mean(1).view(n, 3, 1, 1)
        self.images = tint + torch.randn(n, 3, 16, 16, generator=g) * 0.7

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        return self.images[idx], {"labels": self.labels[idx], "boxes": self.boxes[idx]}


def init_distributed_mode(args):
    args.rank = int(os.environ["RANK"])
    args.world_size = int(os.environ["WORLD_SIZE"])
    args.gpu = int(os.environ["LOCAL_RANK"])
    args.distributed = True
    args.dist_backend = "gloo"
    if args.device == "cuda":
        torch.cuda.set_device(args.gpu)
        args.dist_backend = "nccl"
    dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url,
                            world_size=args.world_size, rank=args.rank)
    dist.barrier()


def train_one_epoch(model, criterion, data_loader, optimizer, device, epoch, max_norm=0.0):
    model.train()
    criterion.train()
    for it, (samples, targets) in enumerate(data_loader):
        samples = samples.to(device)
        targets = {k: v.to(device) for k, v in targets.items()}
        loss_dict = criterion(model(samples), targets)
        weight_dict = criterion.weight_dict
        losses = sum(loss_dict[k] * weight_dict[k] for k in loss_dict.keys() if k in weight_dict)

        optimizer.zero_grad()
        losses.backward()
        if max_norm > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()

        # reduce losses over all processes for logging purposes
        reduced = torch.stack([losses.detach(), *[v.detach() for v in loss_dict.values()]])
        dist.all_reduce(reduced)
        total, ce, bbox = (reduced / dist.get_world_size()).tolist()
        if dist.get_rank() == 0:
            print(f"Epoch: [{epoch}]  [{it}/{len(data_loader)}]  lr: {optimizer.param_groups[0]['lr']:.6f}  "
                  f"loss: {total:.9f}  loss_ce: {ce:.9f}  loss_bbox: {bbox:.9f}")


def main(args):
    init_distributed_mode(args)
    device = torch.device(args.device)
    seed = args.seed + args.rank  # fix the seed for reproducibility
    torch.manual_seed(seed)
    random.seed(seed)

    model = Detector()
    model.to(device)
    model_without_ddp = model
    if args.distributed:
        model = torch.nn.parallel.DistributedDataParallel(
            model, device_ids=[args.gpu] if args.device == "cuda" else None, find_unused_parameters=True)
        model_without_ddp = model.module
    n_parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print("number of params:", n_parameters)

    named = [(n, p) for n, p in model_without_ddp.named_parameters() if p.requires_grad]
    head = [(n, p) for n, p in named if "backbone" not in n]
    param_dicts = [
        {"params": [p for n, p in head if p.ndim > 1]},
        {"params": [p for n, p in head if p.ndim <= 1], "weight_decay": 0.0},
        {"params": [p for n, p in named if "backbone" in n], "lr": args.lr_backbone},
    ]
    optimizer = torch.optim.AdamW(param_dicts, lr=args.lr, weight_decay=args.weight_decay)
    lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, args.lr_drop)
    criterion = SetCriterion({"loss_ce": 1.0, "loss_bbox": args.bbox_loss_coef}).to(device)

    dataset_train = SyntheticCoco()
    sampler_train = DistributedSampler(dataset_train)
    batch_sampler_train = torch.utils.data.BatchSampler(sampler_train, args.batch_size, drop_last=True)
    data_loader_train = DataLoader(dataset_train, batch_sampler=batch_sampler_train, num_workers=0)

    print("Start training")
    start_time = time.time()
    for epoch in range(args.epochs):
        sampler_train.set_epoch(epoch)
        train_one_epoch(model, criterion, data_loader_train, optimizer, device, epoch, args.clip_max_norm)
        lr_scheduler.step()
        if args.output_dir and args.rank == 0:
            torch.save({"model": model_without_ddp.state_dict(), "epoch": epoch}, f"{args.output_dir}/weights.pth")
    print("Training time {}".format(datetime.timedelta(seconds=int(time.time() - start_time))))


if __name__ == "__main__":
    main(get_args_parser().parse_args())
