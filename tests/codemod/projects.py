"""A small project: an entry script, and a module with its loop."""

ENTRY = """
    import engine
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    def main():
        dist.init_process_group("nccl")
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        engine.train_one_epoch(model, loader, optimizer)

    main()
    """
ENGINE = """
    import torch.nn.functional as F

    def train_one_epoch(net, loader, optimizer):
        for x, y in loader:
            loss = F.mse_loss(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
