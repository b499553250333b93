import argparse


def parse_options():
    parser = argparse.ArgumentParser(description="Sequence tagging")
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.15)
    parser.add_argument("--max-norm", type=float, default=1.1)
    parser.add_argument("--resume", type=str, default="")
    parser.add_argument("--local_rank", type=int, default=0)
    return parser.parse_args()
