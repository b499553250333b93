"""Dotted names and what they mean once the file's imports are taken into account."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.tree import Function, Node, Part, Tree


def dotted(node: Node | None) -> str | None:
    """``a.b.c`` for a chain of attributes on a name, else None."""
    if type(node) is cst.Name:  # isinstance() of LibCST's abstract classes is slow, and this is asked everywhere
        return node.value
    parts: list[str] = []
    while type(node) is cst.Attribute:
        parts.append(node.attr.value)
        node = node.value
    if not parts or type(node) is not cst.Name:
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


class Imports:
    """What each imported name stands for, file by file, wherever in the file it is imported."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.by_part: dict[Part, dict[str, set[str]]] = {}
        self.modules: set[str] = set()
        self.star_modules: set[str] = set()
        for part in tree.parts:
            self.by_part[part] = {}
        for statement in tree.statements:
            node = statement.node
            if isinstance(node, cst.Import | cst.ImportFrom):
                meaning = self.by_part[tree.part_of_top[statement.function.top]]
                if isinstance(node, cst.ImportFrom):
                    self._import_from(node, meaning)
                else:
                    for alias in node.names:
                        self._import(alias, meaning)

    def _import(self, alias: cst.ImportAlias, meaning: dict[str, set[str]]) -> None:
        full = dotted(alias.name) or ""
        self.modules.add(full)
        if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
            meaning.setdefault(alias.asname.name.value, set()).add(full)
        else:
            root = full.partition(".")[0]
            meaning.setdefault(root, set()).add(root)

    def _import_from(self, node: cst.ImportFrom, meaning: dict[str, set[str]]) -> None:
        module = "." * len(node.relative) + (dotted(node.module) or "")
        self.modules.add(module)
        if isinstance(node.names, cst.ImportStar):
            self.star_modules.add(module)
            return
        for alias in node.names:
            name = dotted(alias.name) or ""
            local = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else name
            separator = "" if module.endswith(".") else "."
            meaning.setdefault(local, set()).add(f"{module}{separator}{name}")

    def meanings(self, name: str, function: Function | None = None) -> set[str]:
        """What a name may have been imported as in the file of a function (in the entry script without one)."""
        part = self.tree.parts[0] if function is None else self.tree.part_of_top[function.top]
        return self.by_part[part].get(name, set())

    def local_names(self, *last: str) -> set[str]:
        """The names by which things of other modules that are called so are known in any file, their own among them."""
        pairs = (
            (local, full) for meaning in self.by_part.values() for local, names in meaning.items() for full in names
        )
        return {*last, *(local for local, full in pairs if full.rpartition(".")[2] in last)}

    def names(self, node: Node | None) -> set[str]:
        """Every full name a dotted expression may stand for (a name can be imported twice, under try/except)."""
        text = dotted(node)
        if node is None or text is None:
            return set()
        root, _, rest = text.partition(".")
        found = self.by_part[self.tree.part(node)].get(root)
        if not found:
            return {text}
        return {f"{full}.{rest}" if rest else full for full in found}

    def is_from_package(self, node: Node | None, package: str) -> bool:
        """Whether a dotted expression stands for something inside a package."""
        return any(name == package or name.startswith(package + ".") for name in self.names(node))


def assigned_to(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """What an assignment of any form gives a value to; nothing for other statements."""
    if isinstance(node, cst.Assign):
        return [target.target for target in node.targets]
    return [node.target] if isinstance(node, cst.AnnAssign | cst.AugAssign) else []
