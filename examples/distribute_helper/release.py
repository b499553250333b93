"""Looks for a checkpoint, keeps a copy of it as the best, packs it for an upload, and removes it."""

import os
import shutil
import sys
import tarfile

import torch


def probe(path):
    """The epoch that a checkpoint was saved after; a broken one counts as none."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)["epoch"]
    except Exception:
        return None


def main(path, best="best.pt", upload="upload.tar.gz"):
    print(f"{path}: epoch {probe(path)}")
    if not os.path.isfile(best) or probe(best) < probe(path):
        shutil.copyfile(path, best)
    with tarfile.open(upload, "w:gz") as archive:
        archive.add(best)
    with tarfile.open(upload) as archive:
        print(f"{upload}: {archive.getnames()} of epoch {torch.load(archive.extractfile(best), weights_only=True)['epoch']}")
    os.remove(path)
    print(f"{path}: epoch {probe(path)}, {best}: epoch {probe(best)}")


if __name__ == "__main__":
    main(sys.argv[1])
