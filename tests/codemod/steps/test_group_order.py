"""Parameters in the order of a set: ranks disagree on it, so that only ZeRO stage 0 trains as DDP did."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert


@pytest.mark.parametrize(
    ("before", "params"),
    [
        ("", "list(set(model.parameters()))"),
        (
            "head = set(model.module.head.parameters())",
            '[{"params": list(head)}, {"params": model.module.body.parameters()}]',
        ),
        ("head = set(model.module.head.parameters())", "list(set(model.parameters()) - head)"),
        ("", "[p for p in set(model.parameters()).difference(model.module.head.parameters())]"),
        ('keys = {"body", "head"}', "[p for k in keys for p in getattr(model.module, k).parameters()]"),
        ("names = {n for n, _ in model.named_parameters()}", "[dict(model.named_parameters())[n] for n in names]"),
        ("names = set()\nweights = []\nfor n in names:\n    weights.append(n)", "weights"),
        ("", "split(model)"),
    ],
)
def test_parameters_in_the_order_of_a_set_get_stage_zero(before: str, params: str) -> None:
    migrated = convert(
        helpers="""
            def split(model):
                decay = set()
                for name, _ in model.named_parameters():
                    decay.add(name)
                by_name = dict(model.named_parameters())
                return [{"params": [by_name[name] for name in decay]}]
            """,
        optimizer=f"{before}\noptimizer = torch.optim.AdamW({params}, lr=args.lr)\n",
    )
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert [c.kind for c in migrated.changes if c.code == "MG614"] == [Kind.KEPT], migrated.told()


@pytest.mark.parametrize(
    ("before", "params"),
    [
        ("head = set(map(id, model.module.head.parameters()))", "[p for p in model.parameters() if id(p) not in head]"),
        ("head = set(map(id, model.module.head.parameters()))", "filter(lambda p: id(p) in head, model.parameters())"),
        (
            "names = set(n for n, _ in model.named_parameters())",
            "[dict(model.named_parameters())[n] for n in sorted(list(names))]",
        ),
        ("layers = {0, 1}", "[p for k in layers for p in list(model.module.children())[k].parameters()]"),
        ('skip = {"bias"}', '[{"params": [p for n, p in model.named_parameters() if n not in skip]}]'),
    ],
)
def test_questions_about_members_and_sorted_names_keep_the_stage(before: str, params: str) -> None:
    migrated = convert(optimizer=f"{before}\noptimizer = torch.optim.AdamW({params}, lr=args.lr)\n")
    assert migrated.config["zero_optimization"] == {"stage": 2}
    migrated.silent("MG614")


def test_a_stage_that_is_asked_for_is_marked() -> None:
    optimizer = "optimizer = torch.optim.AdamW(list(set(model.parameters())), lr=args.lr)\n"
    convert(optimizer=optimizer, to={"zero_stage": 1}).said("MG614", "list(set(", Kind.TODO)
