"""What a script has for a ZeroRedundancyOptimizer."""

from __future__ import annotations

IMPORTS = """
from functools import partial

from torch.distributed.optim import ZeroRedundancyOptimizer
"""
PLAIN = "optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=args.lr)"
