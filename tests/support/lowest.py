"""The lowest versions that ``pyproject.toml`` allows of what the package needs, as constraints for pip.

    python tests/support/lowest.py > lowest.txt && pip install --constraint lowest.txt --editable .

``tests/run.sh`` tests the oldest Python with them, so that each lower bound is one that works.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
_REQUIREMENT = re.compile(r'^ {4}"(?P<name>[a-z0-9-]+)(?P<bound>[^"]*)",', re.MULTILINE)


def lowest() -> dict[str, str]:
    """Return the lower bound of each dependency; ValueError where one has none."""
    text = PYPROJECT.read_text(encoding="utf-8")
    listed = text.partition("\ndependencies = [\n")[2].partition("\n]")[0]
    found = {}
    for line in _REQUIREMENT.finditer(listed):
        bound = re.match(r">=([0-9.]+)", line["bound"])
        if bound is None:
            raise ValueError(f"{line['name']} has no lower bound")
        found[line["name"]] = bound[1]
    return found


def main() -> None:
    """Print the constraints."""
    sys.stdout.write("".join(f"{name}=={version}\n" for name, version in lowest().items()))


if __name__ == "__main__":
    main()
