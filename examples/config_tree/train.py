"""A forecaster whose settings are a tree of data classes, and whose parts come from registries."""

import argparse

import torch
from project import build_model, build_optimizer, build_schedule
from project.data import series
from project.learner import Learner
from project.settings import Settings, override
from torch.utils.data import DataLoader, DistributedSampler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("overrides", nargs="*", help="section.name=value")
    cfg = override(Settings(), parser.parse_args().overrides)

    learner = Learner(cfg)
    torch.manual_seed(cfg.run.seed)
    model = build_model(cfg.model)
    learner.prepare(model, build_optimizer, build_schedule)
    data = series()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=cfg.train.batch_size, sampler=sampler)
    start = learner.resume(cfg.run.resume) if cfg.run.resume else 0
    for epoch in range(start, cfg.train.epochs):
        sampler.set_epoch(epoch)
        learner.run_epoch(loader, epoch)
        learner.save(epoch)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
