"""Evaluates a checkpoint in one process: ``python evaluate.py tagger.pt``."""

import sys

import torch
import torch.nn.functional as F
from main import Tagger, sentences


def main(path):
    state = torch.load(path, map_location="cpu", weights_only=True)
    net = Tagger().eval()
    net.load_state_dict(state["net"])
    tokens, tags = sentences().tensors
    with torch.no_grad():
        scores = net(tokens)
    right = (scores.argmax(-1) == tags).float().mean()
    print(f"epoch {state['epoch']} loss {F.cross_entropy(scores.flatten(0, 1), tags.flatten()):.9f} accuracy {right:.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
