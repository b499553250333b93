"""What goes with ZeroRedundancyOptimizer: its consolidation, tests of its type, the optimizer inside."""

from __future__ import annotations

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_section, convert
from tests.codemod.steps.redundancy_scripts import IMPORTS, PLAIN


def test_consolidation_goes_with_its_guard() -> None:
    migrated = check_section(
        "end",
        """
        if isinstance(optimizer, ZeroRedundancyOptimizer):
            optimizer.consolidate_state_dict(to=0)
        if hasattr(optimizer, "consolidate_state_dict"):
            optimizer.consolidate_state_dict()
        dist.destroy_process_group()
        """,
        "dist.destroy_process_group()\n",
        imports=IMPORTS,
        optimizer=PLAIN,
    )
    migrated.said("MG610", "optimizer.consolidate_state_dict(to=0)", Kind.CONVERTED)
    assert "ZeroRedundancyOptimizer" not in migrated.code


def test_consolidation_inside_of_an_expression_becomes_none() -> None:
    check_section(
        "end",
        "done = optimizer.consolidate_state_dict() if args.amp else None",
        "done = None if args.amp else None\n",
        imports=IMPORTS,
        optimizer=PLAIN,
    )


def test_a_test_of_the_type_that_decides_more_is_left_to_the_person() -> None:
    migrated = convert(
        imports=IMPORTS,
        optimizer=PLAIN,
        end="""
            if isinstance(optimizer, ZeroRedundancyOptimizer):
                optimizer.consolidate_state_dict(to=0)
                print("consolidated")
            """,
    )
    migrated.said("MG610", "if isinstance(", Kind.TODO)
    assert "consolidate_state_dict" not in migrated.code


def test_the_optimizer_inside_is_left_to_the_person() -> None:
    migrated = convert(imports=IMPORTS, optimizer=PLAIN, end="print(len(optimizer.optim.state))")
    migrated.said("MG610", "optimizer.optim.state", Kind.TODO)


def test_without_the_class_consolidation_is_not_looked_at() -> None:
    migrated = convert(
        end="""
            if hasattr(optimizer, "consolidate_state_dict"):
                optimizer.consolidate_state_dict()
            """
    )
    migrated.silent("MG610")
    assert "optimizer.consolidate_state_dict()" in migrated.code
