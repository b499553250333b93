"""One epoch of masked-autoencoder training."""
import torch
import util.lr_sched as lr_sched
import util.misc as misc


def train_one_epoch(model, data_loader, optimizer, device, epoch, loss_scaler, args=None):
    model.train(True)
    accum_iter = args.accum_iter
    losses = []
    optimizer.zero_grad()
    masks = torch.Generator().manual_seed(100 * epoch + misc.get_rank())

    for data_iter_step, (samples,) in enumerate(data_loader):
        # we use a per iteration (instead of per epoch) lr scheduler
        if data_iter_step % accum_iter == 0:
            lr_sched.adjust_learning_rate(optimizer, data_iter_step / len(data_loader) + epoch, args)

        samples = samples.to(device, non_blocking=True)
        noise = torch.rand(samples.size(0), model.module.num_patches, generator=masks).to(device)
        with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
            loss, _, _ = model(samples, noise, mask_ratio=args.mask_ratio)
        loss_value = loss.item()

        loss = loss / accum_iter
        loss_scaler(loss, optimizer, clip_grad=args.clip_grad, parameters=model.parameters(),
                    update_grad=(data_iter_step + 1) % accum_iter == 0)
        if (data_iter_step + 1) % accum_iter == 0:
            optimizer.zero_grad()

        lr = optimizer.param_groups[0]["lr"]
        loss_value_reduce = misc.all_reduce_mean(loss_value)
        losses.append(loss_value_reduce)
        if misc.is_main_process():
            print(f"Epoch: [{epoch}]  [{data_iter_step}/{len(data_loader)}]  lr: {lr:.6f}  "
                  f"loss: {loss_value_reduce:.9f}")

    return {"loss": sum(losses) / len(losses), "lr": lr}
