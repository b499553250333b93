"""Fine-tune the head of a pretrained network; the backbone stays frozen and is left out of the updates."""

import argparse
import os
import pathlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.utils.data as tdata


def parse_args():
    parser = argparse.ArgumentParser(description="Transfer learning with a frozen backbone")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--optimizer", choices=["adagrad", "rmsprop"], default="adagrad")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--weights", type=pathlib.Path, default=None, help="file with pretrained backbone weights")
    parser.add_argument("--unfreeze-last", action="store_true", help="also train the last block of the backbone")
    parser.add_argument("--outdir", type=pathlib.Path, default=pathlib.Path("."))
    return parser.parse_args()


class Backbone(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.block1 = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.block2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        x = torch.relu(self.block1(x))
        return torch.relu(self.block2(x)).mean(dim=(2, 3))


class TransferModel(nn.Module):
    def __init__(self, classes=5, width=16):
        super().__init__()
        self.backbone = Backbone(width)
        self.neck = nn.Linear(2 * width, 48)
        self.norm = nn.LayerNorm(48)
        self.head = nn.Linear(48, classes)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.neck(self.backbone(x)))))


class Textures(tdata.Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.label = torch.randint(0, 5, (n,), generator=g)
        texture = torch.randn(5, 1, 10, 10, generator=torch.Generator().manual_seed(0))
        self.image = texture[self.label] * 1.5 + torch.randn(n, 1, 10, 10, generator=g)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, k):
        return self.image[k], self.label[k]


def freeze_backbone(model, keep_last):
    for name, param in model.backbone.named_parameters():
        param.requires_grad = keep_last and name.startswith("block2")


def main():
    args = parse_args()
    on_gpu = torch.cuda.is_available()
    dist.init_process_group(backend="nccl" if on_gpu else "gloo")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    device = torch.device(f"cuda:{local_rank}") if on_gpu else torch.device("cpu")
    torch.manual_seed(21)

    model = TransferModel()
    if args.weights is not None:
        missing, unexpected = model.backbone.load_state_dict(torch.load(args.weights, map_location="cpu"), strict=False)
        print("missing keys:", missing, "unexpected keys:", unexpected)
    freeze_backbone(model, args.unfreeze_last)
    model.to(device)
    if on_gpu:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[local_rank], output_device=local_rank)
    else:
        model = nn.parallel.DistributedDataParallel(model)

    trainable = filter(lambda p: p.requires_grad, model.parameters())
    if args.optimizer == "adagrad":
        optimizer = torch.optim.Adagrad(trainable, lr=args.lr, lr_decay=1e-2)
    else:
        optimizer = torch.optim.RMSprop(trainable, lr=args.lr / 10, momentum=0.5, alpha=0.9)

    train_set = Textures(80, seed=1)
    sampler = tdata.distributed.DistributedSampler(train_set)
    loader = tdata.DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for batch, (x, y) in enumerate(loader):
            model.zero_grad(set_to_none=True)
            pred = model(x.to(device))
            loss = criterion(pred, y.to(device))
            loss.backward()
            optimizer.step()
            if rank == 0:
                accuracy = (pred.argmax(1).cpu() == y).float().mean().item()
                print(f"epoch: {epoch}, batch: {batch}, loss: {loss.item():.9f}, accuracy: {accuracy:.3f}")

    if rank == 0:
        args.outdir.mkdir(parents=True, exist_ok=True)
        torch.save(model.module.state_dict(), args.outdir / "finetuned.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
