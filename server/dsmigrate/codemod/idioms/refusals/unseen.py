"""Scripts in which no training of a wrapped model is seen: why, and what to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import Analysis
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, Obj, Tensor, each, forwards_in, show
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.module import Module
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG209",
        "The file starts no training by itself",
        "Nothing at the top level of the file calls what is defined in it, or no wrap or backward is reached from there: convert "
        "the script that starts the training, or set what the wrap asks for.",
        "Run as it stands such a file defines its classes and functions, ends at once, and trains nothing. It is converted "
        "together with the script that starts the training.",
        "dsmigrate",
        Kind.KEPT,
    ),
    Idea(
        "MG907",
        "Another training framework drives the loop",
        "Accelerate, Lightning, Fabric or a Transformers Trainer own backward and step here; they have their own "
        "DeepSpeed integration.",
        "Turn DeepSpeed on in that framework's configuration instead of rewriting the loop.",
        "https://huggingface.co/docs/accelerate/usage_guides/deepspeed",
        Kind.REFUSED,
    ),
    Idea(
        "MG910",
        "The backward of the wrapped model is not seen",
        "The model is wrapped here, but no backward of its loss can be followed from here.",
        "Half a conversion would not train.",
        "dsmigrate's own rule: what cannot be proven is not rewritten",
        Kind.REFUSED,
    ),
    Idea(
        "MG911",
        "Model and optimizer do not meet",
        "The optimizer of the wrapped model is made where it cannot be seen, or never named beside the model.",
        "deepspeed.initialize needs both in one place.",
        "deepspeed/__init__.py, initialize",
        Kind.REFUSED,
    ),
    Idea(
        "MG912",
        "The wrap of the model is not seen",
        "A distributed training is here, but no DistributedDataParallel can be followed to it.",
        "The wrap is made by code that is not read, or the script averages gradients itself.",
        "dsmigrate's own rule: what cannot be proven is not rewritten",
        Kind.REFUSED,
    ),
)
_WORDS = re.compile(r"DistributedDataParallel|\bDDP\(|init_process_group")
_WRAP = re.compile(r"\b(DistributedDataParallel|DDP)$")
_BACKWARD = re.compile(r"\.backward\(")


def not_trained(analysis: Analysis) -> Iterator[Decision]:
    """What is said of a script without a training that could be converted; nothing where there is nothing to say."""
    wraps = {
        role: event
        for event in analysis.of(Happening.WRAP)
        for one in each(event["wrapper"])
        if isinstance(one, Obj) and (role := role_of(one))
    }
    if Role.ENGINE in wraps:
        event = wraps[Role.ENGINE]
        yield Decision(
            "MG904",
            Kind.KEPT,
            event.module,
            event.node,
            "deepspeed.initialize is called here already: nothing is left to convert",
        )
        return
    backward = next(analysis.of(Happening.BACKWARD), None)
    group = next(analysis.of(Happening.GROUP), None)
    driven = _driven(analysis)
    entry = analysis.project.module(analysis.project.entry, "__main__")
    if driven is not None and (
        group is not None or Role.WRAPPER in wraps or (entry is not None and _WORDS.search(entry.source.text))
    ):
        yield _refused(
            "MG907", driven, told("{what} drives the training", what=_name(driven)), "it has its own DeepSpeed switch"
        )
        return
    other = wraps.get(Role.SHARDED) or next(analysis.of(Happening.PARALLEL), None)
    if other is not None and Role.WRAPPER not in wraps and (backward is not None or driven is not None):
        what = "FSDP" if Role.SHARDED in wraps else str(getattr(other["name"], "value", ""))
        yield _refused("MG903", other, told("{what} is used here", what=what), "the engine has no counterpart to it")
    elif Role.WRAPPER in wraps:
        if backward is not None or _speaks(analysis, _BACKWARD) is not None:
            yield _refused(
                "MG910",
                wraps[Role.WRAPPER],
                "no backward of this model's loss is seen",
                "half a conversion would not train",
            )
        elif (last := _trains_elsewhere(analysis)) is not None:
            yield _refused("MG910", wraps[Role.WRAPPER], told("{name} in line {line} is not read: it may train this model", name=_code(last)[:60], line=last.line),
                           "half a conversion would not train")  # fmt: skip
        else:
            event = wraps[Role.WRAPPER]
            yield _kept(event.module, event.line, "no backward of this wrapped model is in what this script runs")
    elif backward is not None and group is not None:
        averaged = next(
            (event for event in analysis.of(Happening.GRADIENT_WRITE) if isinstance(event["of"], Tensor)), None
        )
        message = (
            "the script averages gradients itself: there is no DistributedDataParallel"
            if averaged
            else "no DistributedDataParallel of this model is seen"
        )
        yield _refused("MG912", averaged or backward, message, "what the engine would take over is not known")
    else:
        yield from _unreached(analysis, trains=backward is not None)


def _kept(module: Module, line: int, reason: str) -> Decision:
    return Decision(
        "MG209", Kind.KEPT, module, module.tree, "this script starts no training under DistributedDataParallel by itself", reason, lines=(line, line)
    )  # fmt: skip


def _refused(code: str, event: Event, message: str, reason: str) -> Decision:
    return Decision(code, Kind.REFUSED, event.module, event.node, message, reason)


def _driven(analysis: Analysis) -> Event | None:
    return next((event for event in analysis.of(Happening.MADE) if event["role"] == Const("framework")), None)


def _name(event: Event) -> str:
    return next((one.made_by.split(".")[0] for one in each(event["what"]) if isinstance(one, Obj)), "a framework")


def _speaks(analysis: Analysis, words: re.Pattern[str]) -> Module | None:
    """A file of the run that speaks of something."""
    return next(
        (
            top.module
            for top in analysis.run.modules.values()
            if top.module is not None and words.search(top.module.source.text)
        ),
        None,
    )


def _unreached(analysis: Analysis, *, trains: bool) -> Iterator[Decision]:
    """A script that speaks of DDP, by itself or in what it imports, of which the run shows nothing."""
    module = analysis.project.module(analysis.project.entry, "__main__")
    speaking = _speaks(analysis, _WORDS)
    if module is None or speaking is None:
        return
    unfound = None if trains else next(_unfound(analysis), None)
    if unfound is not None:
        yield Decision(
            "MG209", Kind.KEPT, module, module.tree, "no training under DistributedDataParallel is seen from here", unfound, lines=(1, 1)
        )  # fmt: skip
        return
    if not _WORDS.search(module.source.text):
        yield _kept(
            module,
            1,
            told("{path} speaks of it, and nothing that is read from here trains with it", path=speaking.path),
        )
        return
    line = next((index for index, text in enumerate(module.lines, 1) if _WORDS.search(text)), 1)
    if trains:
        yield _kept(module, line, _not_reached(module))
    elif module not in analysis.run.called:
        yield Decision(
            "MG209", Kind.KEPT, module, module.tree, "this file starts no training by itself: convert the script that imports it",
            "nothing at its top level calls what is defined here", lines=(line, line),
        )  # fmt: skip
    elif _speaks(analysis, _BACKWARD) is None:
        yield _kept(module, line, "no backward is in what is read from here")
    else:
        last = _unread(analysis)
        where = (
            told("; {name} in line {line} is not read", name=show(last["function"])[:50], line=last.line)
            if last is not None
            else ""
        )
        yield Decision(
            "MG912", Kind.REFUSED, module, module.tree, told("the training cannot be followed from here{where}", where=where), "what is not seen is not rewritten",
            lines=(line, line),
        )  # fmt: skip


def _unfound(analysis: Analysis) -> Iterator[str]:
    """Imports that lead to no file of the project, though files of it are meant."""
    project = analysis.project
    for module in [top.module for top in analysis.run.modules.values() if top.module is not None]:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and not node.level and node.module and not project.find(node.module):
                tails = [node.module.split(".", count)[count] for count in range(1, node.module.count(".") + 1)]
                path = next((path for path in map(project.find, tails) if path), None)
                if path is not None and project.speaks_of(path, _BACKWARD):
                    place = f"{module.path}:{node.lineno}"
                    yield told(
                        "{place} imports {name}, which is not found: is it {path}?",
                        place=place,
                        name=node.module,
                        path=path,
                    )
            elif (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) in {"importlib.import_module", "import_module", "__import__"}
                and node.args
                and not isinstance(node.args[0], ast.Constant)
            ):
                place = f"{module.path}:{node.lineno}"
                yield told("{place} imports a module that is known only when it runs", place=place)


def _not_reached(module: Module) -> str:
    """Where a file wraps a model, and under which test that does not hold as the script stands."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _WRAP.search(ast.unparse(node.func)):
            tests = (step.node.test for step in module.step(node).around() if isinstance(step.node, ast.If))
            test = next((told(", under `if {test}`,", test=ast.unparse(one)) for one in tests), "")
            return told(
                "the wrap in line {line}{test} is not reached as the script stands", line=node.lineno, test=test
            )
    return "nothing in this file wraps a model"


def _trains_elsewhere(analysis: Analysis) -> Event | None:
    """An unread call that is given a wrapped model, or the loss that it gave, and an optimizer."""
    for event in analysis.of(Happening.OPAQUE):
        things = [one for name, value in event.what.items() if name.startswith("thing") for one in each(value)]
        models = [forward.model for one in things for forward in forwards_in(one)]
        roles = {role_of(one) for one in (*things, *models)}
        if {Role.WRAPPER, Role.OPTIMIZER} <= roles:
            return event
    return None


def _code(event: Event) -> str:
    """What a call calls, as it is written."""
    return event.module.text(event.node.func) if isinstance(event.node, ast.Call) else show(event["function"])


def _unread(analysis: Analysis) -> Event | None:
    events = list(analysis.of(Happening.OPAQUE))
    return events[-1] if events else None


def do_not_meet(training: Training) -> Decision:
    """What is said where the engine cannot be made."""
    event = training.wraps[0]
    return Decision(
        "MG911",
        Kind.REFUSED,
        event.module,
        event.node,
        str(training.site),
        "deepspeed.initialize needs model and optimizer in one place",
    )
