import math
import sys

import torch
import util.lr_sched as lr_sched
import util.misc as misc


def train_one_epoch(model: torch.nn.Module, data_loader, optimizer: torch.optim.Optimizer,
                    device: torch.device, epoch: int, loss_scaler, args=None):
    model.train(True)
    accum_iter = args.accum_iter
    optimizer.zero_grad()
    stats = {"loss": 0.0}

    for data_iter_step, (samples, mask) in enumerate(data_loader):
        # we use a per iteration (instead of per epoch) lr scheduler
        if data_iter_step % accum_iter == 0:
            lr = lr_sched.adjust_learning_rate(optimizer, data_iter_step / len(data_loader) + epoch, args)

        samples = samples.to(device, non_blocking=True)
        mask = mask.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.float16, enabled=args.amp):
            loss, _ = model(samples, mask)

        loss_value = loss.item()
        if not math.isfinite(loss_value):
            print(f"Loss is {loss_value}, stopping training")
            sys.exit(1)

        loss = loss / accum_iter
        grad_norm = loss_scaler(loss, optimizer, clip_grad=args.clip_grad, parameters=model.parameters(),
                                create_graph=False, update_grad=(data_iter_step + 1) % accum_iter == 0)
        if (data_iter_step + 1) % accum_iter == 0:
            optimizer.zero_grad()

        reduced = misc.all_reduce_mean(loss_value)
        stats["loss"] += reduced / len(data_loader)
        if misc.is_main_process():
            shown = f"  grad_norm: {grad_norm.item():.6f}" if grad_norm is not None else ""
            print(f"Epoch: [{epoch}]  [{data_iter_step}/{len(data_loader)}]  lr: {lr:.6f}  loss: {reduced:.9f}{shown}",
                  flush=True)
    return stats
