"""A line for torchrun as a line for the deepspeed launcher, where both start the same processes alike."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dsmigrate.codemod.model import Kind
from dsmigrate.launchers import model
from dsmigrate.launchers.model import Launch, Script, Verdict
from dsmigrate.launchers.shell import Word

_SWITCHES = frozenset({"standalone", "use_env", "no_python"})
_VALUES = frozenset(
    {"nproc_per_node", "nnodes", "node_rank", "master_addr", "master_port", "rdzv_backend", "rdzv_endpoint", "rdzv_id",
     "rdzv_conf", "max_restarts", "monitor_interval", "start_method"}
)  # fmt: skip
_ALL = frozenset({"gpu", "auto"})
_PLAIN = frozenset({"python", "python3"})
_WHY = "the deepspeed launcher sets the same RANK, WORLD_SIZE, LOCAL_RANK and address"


def of_torchrun(
    launch: Launch, script: Script, variables: Mapping[str, str], exported: frozenset[str], *, ssh_only: bool
) -> Verdict:
    """The verdict about a line of torchrun or torch.distributed.launch.

    ``ssh_only``: the deepspeed launcher of the release has no --no_ssh.
    """
    options = _parsed(launch.options, variables)
    stays = f"{launch.kind} stays"
    if isinstance(options, str):
        return Verdict(
            "MG223", Kind.KEPT, f"{stays}: {options}", "the deepspeed launcher has no counterpart that is sure"
        )
    if launch.managers:
        return _stays(f"{stays} under {launch.managers[0]}",
                       "the deepspeed launcher would start srun or ssh itself")  # fmt: skip
    if launch.command.words[launch.head[0]].text not in {*_PLAIN, "torchrun"}:
        return _stays(
            stays, "it starts with an interpreter of its own, and the deepspeed launcher takes the first in PATH"
        )
    if "in a variable" in launch.flags:
        return Verdict(
            "MG223", Kind.KEPT, f"{stays}: it stands in a variable", "every use of the variable would change"
        )
    if _text(options, "max_restarts", variables) not in {None, "0"}:
        return _stays(f"{stays}: --max_restarts", "the deepspeed launcher starts nothing again")
    nodes = _text(options, "nnodes", variables)
    if nodes not in {None, "1", "1:1"}:
        return _several_nodes(
            _raw(options, "nnodes") or "", _raw(options, "nproc_per_node") or "1", script, ssh_only=ssh_only
        )
    old = launch.kind == model.LAUNCH_MODULE and "use_env" not in options
    if old and not script.start.local_rank:
        return Verdict(
            "MG223", Kind.KEPT, stays, "it hands the script --local-rank, which the script reads in its own way"
        )
    count = _raw(options, "nproc_per_node") or "1"
    port = _raw(options, "master_port") or _port_of(_text(options, "rdzv_endpoint", variables))
    extra = ["--master_port", port] if port and port != "0" else []
    extra += ["--no_python"] if "no_python" in options else []
    extra += [] if old else ["--no_local_rank"]
    return _line(launch, count, extra, former=launch.kind, chosen=_devices(launch, variables, exported))


def _several_nodes(nodes: str, count: str, script: Script, *, ssh_only: bool) -> Verdict:
    without = (
        "" if ssh_only else "without ssh between them, on every node with --no_ssh --node_rank R --master_addr HOST; "
    )
    return Verdict(
        "MG224",
        Kind.TODO,
        f"{nodes} nodes: list them in a hostfile (`worker-1 slots={count}`) and start once, on the first: "
        f"`deepspeed --hostfile hostfile --num_gpus {count} --no_local_rank {script.name} …`; {without}"
        "under SLURM with --launcher slurm; torchrun works too",
        "the deepspeed launcher needs the names of the nodes, which are not on this line",
    )


def of_python(
    launch: Launch, count: str, said: str, variables: Mapping[str, str], exported: frozenset[str]
) -> Verdict | None:
    """The verdict about ``python train.py`` for ``count`` processes; None where torchrun is surer."""
    word = launch.command.words[launch.head[0]].text
    if word not in _PLAIN or _devices(launch, variables, exported) is None:
        return None
    verdict = _line(
        launch, count, ["--no_local_rank"], former=f"{word} ({said})", chosen=_devices(launch, variables, exported)
    )
    return verdict if verdict.words is not None else None


def _line(launch: Launch, count: str, options: list[str], *, former: str, chosen: list[str] | None) -> Verdict:
    """The line with ``options`` besides the number of processes; ``chosen`` are the visible devices."""
    if chosen is None:
        return _stays(f"{former} stays: which devices are visible is not known",
                      "with --num_gpus the deepspeed launcher takes the first ones, whatever "
                      "CUDA_VISIBLE_DEVICES says")  # fmt: skip
    if chosen and count not in {*_ALL, str(len(chosen))}:
        return _stays(f"{former} stays: {count} processes on {len(chosen)} visible devices",
                      "the deepspeed launcher starts one process per visible device")  # fmt: skip
    number = [] if chosen or count in _ALL else ["--num_gpus", count]
    module = ["--module"] if launch.module else []
    words = ["deepspeed", *number, *options, *module]
    last = launch.script - 1
    return Verdict("MG222", Kind.CONVERTED, f"{former} → deepspeed", _WHY, launch.head[0], last, tuple(words))


def _stays(message: str, reason: str) -> Verdict:
    return Verdict("MG223", Kind.KEPT, message, reason)


def _devices(launch: Launch, variables: Mapping[str, str], exported: frozenset[str]) -> list[str] | None:
    """The visible devices as far as the file names them: [] where it names none, None where they are not known."""
    name = "CUDA_VISIBLE_DEVICES"
    value: str | None = ""
    for word in launch.in_front:
        if word.assigns == name:
            text = word.expanded(variables)
            value = None if text is None else text.partition("=")[2]
            break
    else:
        if name in exported:
            value = variables.get(name)
    if value is None:
        return None
    found = [part.strip() for part in value.split(",") if part.strip()]
    return found if all(part.isdecimal() for part in found) and found == sorted(set(found), key=int) else None


def _parsed(words: tuple[Word, ...], variables: Mapping[str, str]) -> dict[str, str] | str:
    """The options by name with dashes as underscores, as they are written; or what is not known about them."""
    found: dict[str, str] = {}
    index = 0
    while index < len(words):
        text = words[index].text
        if not text.startswith("--") or words[index].quoted:
            return f"{text} may be several options"
        name, equals, value = text[2:].partition("=")
        name = name.replace("-", "_")
        if name in _SWITCHES and not equals:
            found[name] = ""
        elif name not in _VALUES:
            return f"--{name}"
        elif equals:
            found[name] = value
        else:
            index += 1
            if index >= len(words):
                return f"--{name} without a value"
            found[name] = words[index].text
        index += 1
    backend = found.get("rdzv_backend")
    if backend not in {None, "c10d", "static"}:
        return f"--rdzv_backend {backend}"
    del variables
    return found


def _raw(options: Mapping[str, str], name: str) -> str | None:
    return options.get(name)


def _text(options: Mapping[str, str], name: str, variables: Mapping[str, str]) -> str | None:
    """The value of an option, a variable that is known put in."""
    value = options.get(name)
    found = re.fullmatch(r"\"?\$\{?(\w+)\}?\"?", value) if value is not None else None
    return variables.get(found[1], value) if found else value


def _port_of(endpoint: str | None) -> str:
    found = re.fullmatch(r"[\w.-]+:(\d+)", endpoint or "")
    return found[1] if found else ""
