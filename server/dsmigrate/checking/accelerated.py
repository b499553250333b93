"""What a script with ``Accelerator(...)`` says that its config says too, and what it gives ``prepare``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dsmigrate.convert.model import ConvertError
from dsmigrate.convert.python_calls import EXPRESSION, Argument, Call, Script, script_of
from dsmigrate.files.syntax import last_name
from dsmigrate.rules import Accelerated, Arguments, Said
from dsmigrate.rules.model import STAND_INS

_OPTION = re.compile(r"\w+\.(\w+)")
_WORDS = re.compile(r"(?:fp16|bf16|fp8|no)")
_OPTIMIZERS = re.compile(
    r"torch\.optim\.(?!lr_scheduler)\w+|bitsandbytes\.optim\.\w+|transformers(?:\.optimization)?\.(?:AdamW|Adafactor)"
)
_SCHEDULERS = re.compile(
    r"torch\.optim\.lr_scheduler\.\w+|(?:transformers|diffusers)(?:\.optimization)?\.get_(?:\w+_)?(?:scheduler|schedule)(?:_\w+)?"
)
_REAL = {"optimizer": _OPTIMIZERS, "scheduler": _SCHEDULERS}


def read_script(text: str, name: str, given: Arguments) -> Accelerated | None:
    """Return what a script says that is started with ``given``; None where it makes no one ``Accelerator``."""
    try:
        script = script_of(text)
    except ConvertError:
        return None
    makers = script.calls("Accelerator")
    if len(makers) != 1:
        return None
    return _Reader(script, name, given).read(makers[0])


class _Reader:
    def __init__(self, script: Script, name: str, given: Arguments) -> None:
        self.script, self.name, self.given = script, name, given
        self.imports = dict(_imports(script.tree))
        self.assigned = _assigned(script.tree)

    def read(self, maker: Call) -> Accelerated:
        accumulates = "gradient_accumulation_plugin" in maker.arguments
        steps = maker.arguments.get("gradient_accumulation_steps")
        said = {
            "gradient_accumulation_steps": None if steps is None else self.said(steps, "Accelerator"),
            "mixed_precision": self.precision(maker),
            "gradient_clipping": self.clipping(),
            **dict(self.of_stand_in("DummyOptim", _OF_OPTIMIZER, ("params", "lr", "weight_decay"))),
            **dict(self.of_stand_in("DummyScheduler", _OF_SCHEDULER, ("optimizer", "total_num_steps", *_WARMUP))),
        }
        if steps is None and maker.is_whole and not accumulates:
            said["gradient_accumulation_steps"] = Said(self.place(maker), "", 1)
        made = dict(self.made())
        by_value = next(self.on_accelerator("clip_grad_value_"), None)
        return Accelerated(
            said={key: one for key, one in said.items() if one is not None},
            real={kind: place for (kind, is_real), place in made.items() if is_real},
            stand_ins={kind: place for (kind, is_real), place in made.items() if not is_real},
            has_stand_in=frozenset(kind for kind, word in STAND_INS.items() if word in self.script.text),
            clips_by_value="" if by_value is None else self.place(by_value),
            reads_steps=not accumulates and maker.is_whole,
        )

    def place(self, call: Call) -> str:
        return f"{self.name}:{self.script.line_of(call)}"

    def said(self, argument: Argument, called: str) -> Said | None:
        """Return what an argument of a call says: a literal, or an option of the script."""
        line = self.script.text.count("\n", 0, argument.place.start) + 1
        if argument.value is not EXPRESSION:
            words = f"{called}({argument.name}={argument.text})"
            return None if argument.value is None else Said(f"{self.name}:{line}", words, argument.value)
        option = _OPTION.fullmatch(argument.text)
        found = None if option is None else self.given.given(option[1])
        if option is None or found is None or found.text is None:
            return None
        value = _number(found.text)
        is_default = option[1] not in self.given.values
        return Said(found.place, f"--{option[1]} {found.text}", value, is_default=is_default)

    def precision(self, maker: Call) -> Said | None:
        argument = maker.arguments.get("mixed_precision")
        found = None if argument is None else self.said(argument, "Accelerator")
        return found if found is not None and _WORDS.fullmatch(str(found.value)) else None

    def clipping(self) -> Said | None:
        """Return the norm that all calls of ``accelerator.clip_grad_norm_`` name alike."""
        limits = [call.arguments.get("max_norm") for call in self.on_accelerator("clip_grad_norm_")]
        found = [None if limit is None else self.said(limit, "clip_grad_norm_") for limit in limits]
        first = next(iter(found), None)
        are_one = all(one is not None and first is not None and one.value == first.value for one in found)
        return first if are_one and first is not None and isinstance(first.value, (int, float)) else None

    def on_accelerator(self, method: str) -> Iterator[Call]:
        for call in self.script.calls(method, positional=("parameters", "max_norm")):
            text = self.script.text[call.start : call.end]
            base = text.partition(f".{method}")[0].rpartition(".")[2]
            makes = [_called(node) for node in self.assigned.get(base, ())]
            if base == "accelerator" or (makes and all(one == "Accelerator" for one in makes)):
                yield call

    def of_stand_in(
        self, called: str, keys: dict[str, str], positional: tuple[str, ...]
    ) -> Iterator[tuple[str, Said | None]]:
        calls = self.script.calls(called, positional=positional)
        if len(calls) == 1:
            for name, key in keys.items():
                argument = calls[0].arguments.get(name)
                yield key, None if argument is None else self.said(argument, called)

    def made(self) -> Iterator[tuple[tuple[str, bool], str]]:
        """Yield what ``prepare`` is given, as far as that is certain: optimizer or scheduler, real or a stand-in."""
        for node in ast.walk(self.script.tree):
            if not (isinstance(node, ast.Call) and _called(node) == "prepare" and isinstance(node.func, ast.Attribute)):
                continue
            for argument in node.args:
                for kind in STAND_INS:
                    is_real = self.is_real(argument, kind)
                    if is_real is not None:
                        yield (kind, is_real), f"{self.name}:{argument.lineno}"

    def is_real(self, node: ast.expr, kind: str) -> bool | None:
        """Return whether an argument of ``prepare`` is a real optimizer, or a stand-in; None for anything else."""
        values = self.assigned.get(node.id, []) if isinstance(node, ast.Name) else [node]
        values = [one for one in values if _called(one) != "prepare"]
        found = {self.kind_of(one.func, kind, one) if isinstance(one, ast.Call) else None for one in values}
        return found.pop() if len(found) == 1 else None

    def kind_of(self, made_by: ast.expr, kind: str, call: ast.Call, depth: int = 0) -> bool | None:
        dotted = self.dotted(made_by)
        if dotted.rpartition(".")[2] == STAND_INS[kind]:
            words = {word.arg for word in call.keywords}
            return None if words & {None, "lr_scheduler_callable"} or len(call.args) > len(_WARMUP) + 2 else False
        if _REAL[kind].fullmatch(dotted):
            return True
        values = self.assigned.get(made_by.id, []) if isinstance(made_by, ast.Name) and not depth else []
        found = {self.kind_of(value, kind, call, depth + 1) for value in values}
        return found.pop() if len(found) == 1 else None

    def dotted(self, node: ast.expr) -> str:
        """Return the name of what is called, with the module that its first part is imported from."""
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else ""
        return self.imports.get(node.id, node.id) if isinstance(node, ast.Name) else ""


_OF_OPTIMIZER = {"lr": "optimizer.params.lr", "weight_decay": "optimizer.params.weight_decay"}
_OF_SCHEDULER = {"warmup_num_steps": "scheduler.params.warmup_num_steps"}
_WARMUP = ("warmup_num_steps",)


def _number(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _called(node: ast.expr) -> str:
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names that a script imports with what they are called in full."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _assigned(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Return every value that each name of a script is assigned; of a name in a tuple the whole value."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.For)):
            targets = [node.target]
        value = node.iter if isinstance(node, ast.For) else getattr(node, "value", None)
        for target in targets:
            for inner in ast.walk(target):
                if isinstance(inner, ast.Name) and value is not None:
                    found.setdefault(inner.id, []).append(value)
    return found
