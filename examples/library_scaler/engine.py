from contextlib import suppress

import torch
import torch.distributed as dist
import torch.nn.functional as F


def train_one_epoch(model, loader, optimizer, device, epoch, amp_autocast=suppress, loss_scaler=None, args=None):
    second_order = hasattr(optimizer, "is_second_order") and optimizer.is_second_order
    model.train()
    optimizer.zero_grad()
    for index, (images, targets) in enumerate(loader):
        need_update = (index + 1) % args.update_freq == 0 or index + 1 == len(loader)
        images, targets = images.to(device), targets.to(device)
        with amp_autocast():
            loss = F.cross_entropy(model(images), targets)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} step {index} loss: {loss.item():.9f}", flush=True)
        if args.update_freq > 1:
            loss = loss / args.update_freq
        if loss_scaler is not None:
            loss_scaler(
                loss,
                optimizer,
                clip_grad=args.clip_grad,
                parameters=model.parameters(),
                create_graph=second_order,
                need_update=need_update,
            )
        else:
            loss.backward(create_graph=second_order)
            if need_update:
                if args.clip_grad is not None:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
                optimizer.step()
        if need_update:
            optimizer.zero_grad()
