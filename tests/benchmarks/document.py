"""What reading a config costs, as multiples of what other parsers take for the same text.

    python -m tests.benchmarks.document [--repeat N]

For a config of 100 lines and one of 10 000: our parse, the same with all its problems, and an edit of one number deep
inside, beside hjson.loads (what DeepSpeed reads with), json.loads, and tree-sitter-json with a walk over the whole tree
(the tree alone says nothing to Python). All are measured in turn, the least time of several runs counts. At the end,
what each makes of a value that is being typed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable

import hjson
import tree_sitter_json
from tree_sitter import Language, Parser, Tree

from dsmigrate.document import parse

JSON = Language(tree_sitter_json.language())
SECTION = {
    "stage": 3,
    "offload_optimizer": {"device": "cpu", "pin_memory": True},
    "reduce_bucket_size": 5e8,
    "betas": [0.9, 0.999],
    "type": "AdamW",
    "enabled": "auto",
}
HALF_TYPED = '{"a": tru, "b": 2}'


def config(lines: int) -> str:
    """Return a config of about ``lines`` lines, laid out as most are."""
    sections: dict[str, object] = {"train_batch_size": "auto"}
    text = ""
    while text.count("\n") < lines - 8:
        for _ in range(max(1, lines // 1000)):
            sections[f"section_{len(sections)}"] = SECTION
        text = json.dumps(sections, indent=4)
    return text


def walk(tree: Tree) -> int:
    """Visit every node with its kind and range, as any use of the tree has to; return their number."""
    cursor = tree.walk()
    count = 0
    while True:
        node = cursor.node
        if node is not None:
            _ = (node.type, node.start_byte, node.end_byte)
        count += 1
        if cursor.goto_first_child() or cursor.goto_next_sibling():
            continue
        while cursor.goto_parent():
            if cursor.goto_next_sibling():
                break
        else:
            return count


def seconds(works: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Return the least time of each of ``works``, run in turn."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeat):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def measure(text: str, repeat: int) -> None:
    """Print the times for one text, and the ratios to our parse."""
    data = text.encode()
    parser = Parser(JSON)
    document = parse(text)
    at = text.index('"stage": 3', len(text) // 2) + len('"stage": ')
    works: dict[str, Callable[[], object]] = {
        "parse": lambda: parse(text),
        "parse and problems": lambda: parse(text).problems,
        "parse and value": lambda: parse(text).value(),
        "edit": lambda: document.edit(at, at + 1, "2"),
        "hjson.loads": lambda: hjson.loads(text),
        "json.loads": lambda: json.loads(text),
        "tree-sitter parse": lambda: parser.parse(data),
        "tree-sitter parse and walk": lambda: walk(parser.parse(data)),
    }
    times = seconds(works, repeat)
    ours = times["parse"]
    print(f"{text.count(chr(10)) + 1} lines, {len(text)} characters")
    for name, taken in times.items():
        print(f"  {name:28}{1000 * taken:10.3f} ms  {taken / ours:7.2f} x parse")


def readings(text: str) -> None:
    """Print what each parser makes of half-typed text."""
    pairs = []
    waiting = [Parser(JSON).parse(text.encode()).root_node]
    while waiting:
        node = waiting.pop()
        waiting.extend(reversed(node.children))
        if node.type == "pair":
            key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
            pairs.append(tuple(text[part.start_byte : part.end_byte] if part else None for part in (key, value)))
    print(f"half typed  {text}")
    print(f"  ours         {parse(text).value()}")
    print(f"  tree-sitter  {pairs}")


def main() -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    args = parser.parse_args()
    measure(config(100), args.repeat * 10)
    measure(config(10_000), args.repeat)
    readings(HALF_TYPED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
