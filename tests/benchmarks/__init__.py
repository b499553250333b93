"""Commands that print a figure; nothing here is collected by pytest. They run from the root of a checkout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "server"))
