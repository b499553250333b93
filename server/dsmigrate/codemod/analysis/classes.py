"""Classes of the script: their order of bases, and what is found in them by a name."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.values import Expr, Kind, Lib, Obj, Value


def order(cls: Obj) -> tuple[Value, ...]:
    """The order in which a class and its bases are asked, classes of libraries among them; linearised as Python does."""
    bases = [base for base in cls.data["bases"] if isinstance(base, Obj | Lib | Expr)]
    lines = [
        list(base.data["order"]) if isinstance(base, Obj) and base.kind is Kind.CLASS else [base] for base in bases
    ]
    lines.append(list(bases))
    found: list[Value] = [cls]
    while any(lines):
        lines = [line for line in lines if line]
        head = next((line[0] for line in lines if not any(line[0] in other[1:] for other in lines)), lines[0][0])
        found.append(head)
        lines = [[one for one in line if one != head] for line in lines]
    return tuple(found)


def bases_of(thing: Value) -> Iterator[str]:
    """The qualified names of the library's classes that a class or an instance is of."""
    if isinstance(thing, Lib):
        yield thing.name
        return
    if not isinstance(thing, Obj):
        return
    cls = thing if thing.kind is Kind.CLASS else thing.cls
    if cls is not None:
        yield from (base.name for base in cls.data["order"] if isinstance(base, Lib))
    if thing.made_by:
        yield thing.made_by


def is_closed(thing: Obj) -> bool:
    """Whether every base of an instance's class is read, or one of torch's whose attributes are known."""
    cls = thing if thing.kind is Kind.CLASS else thing.cls
    return cls is not None and all(
        isinstance(base, Obj)
        or (
            isinstance(base, Lib)
            and base.name in {"torch.nn.Module", "builtins.object", "abc.ABC", "torch.utils.data.Dataset"}
        )
        for base in cls.data["order"]
    )


def is_mapping(thing: Obj) -> bool:
    """Whether an instance's class is a dictionary of its own."""
    return thing.kind is Kind.INSTANCE and any(base in _MAPPINGS for base in bases_of(thing))


_MAPPINGS = frozenset(
    ["builtins.dict", "typing.Dict", "collections.OrderedDict", "collections.UserDict", "collections.defaultdict",
     "collections.Counter", "easydict.EasyDict", "addict.Dict", "munch.Munch", "box.Box"]
)  # fmt: skip


def looked_up(cls: Obj, name: str, *, behind: Obj | None = None) -> tuple[Value, Value] | None:
    """A name in a class or its bases, with the class that has it; a base of a library that comes first may have any."""
    line = cls.data["order"]
    if behind is not None and behind in line:
        line = line[line.index(behind) + 1 :]
    for base in line:
        if isinstance(base, Obj):
            if base.has(name):
                return base.at(name), base
        elif isinstance(base, Lib) and base.name not in {
            "builtins.object",
            "abc.ABC",
            "typing.Generic",
            "typing.Protocol",
        }:
            return Lib(f"{base.name}.{name}"), base
        elif isinstance(base, Expr):
            return Expr("field", base, name), base
    return None
