"""Checkpoints stay files: what the script saves with ``torch.save`` and resumes from is what it was under DDP.

One call after ``deepspeed.initialize`` teaches the script's own optimizer and model. ``optimizer.state_dict()`` then
gives, and ``optimizer.load_state_dict()`` takes, torch's format whole: parameters by number, groups, one tensor of the
parameter's shape per state. ``model.module.state_dict()`` is whole at ZeRO stage 3 too, and weights that are loaded
after ``deepspeed.initialize`` reach the fp32 copies that the optimizer works on.
"""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import Any

import deepspeed
import torch
import torch.distributed as dist

from dsmigrate.codemod.runtime.pieces import Piece, pieces_of


def parameter_groups(optimizer: torch.optim.Optimizer) -> list[tuple[dict[str, Any], list[torch.Tensor]]]:
    """Note the optimizer's groups and their parameters, for keep_torch_checkpoints: right after the optimizer is made.

    Needed if parameters are frozen or a group may be empty, which torch's format counts and DeepSpeed drops, and for
    exact fp32 copies if an optimizer of half-precision weights loads its state before deepspeed.initialize.
    """
    groups = [(group, list(group["params"])) for group in optimizer.param_groups]

    def follow(_: Any) -> None:  # loading puts other dictionaries in the place of the groups
        groups[:] = [(group, parameters) for group, (_, parameters) in zip(optimizer.param_groups, groups)]

    optimizer.register_load_state_dict_pre_hook(note_extra_state)
    optimizer.register_load_state_dict_post_hook(follow)
    return groups


def keep_torch_checkpoints(engine: Any, groups: Any = None, *, timeout: float = 300.0) -> None:
    """Let the script's optimizer and model save and load whole states, in torch's format. All ranks, after initialize.

    What the optimizer loaded before deepspeed.initialize is put in place now. From here on either all ranks call
    ``optimizer.state_dict()`` (and ``model.module.state_dict()`` at ZeRO 3), which raises if some do not come within
    ``timeout`` seconds, or any rank after ``gather_checkpoint``. Loading needs no other rank: each takes its part.
    """
    engine.torch_checkpoints = TorchCheckpoints(engine, groups, timeout)


def gather_checkpoint(engine: Any, *, keep: bool | None = None, optimizer: bool = True) -> None:
    """Gather the states of all ranks in CPU memory of the ranks that save next. Collective: all ranks call it.

    ``keep`` says whether this rank saves: by default the first rank of each node does. Without ``optimizer`` only
    weights are gathered. From the first call on, ``state_dict()`` returns what was gathered last, without
    communication, and raises if a step was made since. The memory is freed after the next step. Does nothing for a
    model that is not an engine, in a script that may train without one.
    """
    if isinstance(engine, deepspeed.DeepSpeedEngine):
        engine.torch_checkpoints.gather(keep=engine.local_rank == 0 if keep is None else keep, optimizer=optimizer)


def refresh_masters(engine: Any) -> None:
    """Let weights that were changed in place reach the optimizer's fp32 copies: masks, averages. Not collective.

    At ZeRO 3 the change has to be made under ``deepspeed.zero.GatheredParameters(..., modifier_rank=0)``.
    """
    for parameter in engine.module.parameters():
        engine.torch_checkpoints.refresh(parameter)


def note_extra_state(optimizer: Any, state_dict: dict[str, Any]) -> None:
    """Hook: what torch's load_state_dict would drop."""
    optimizer.extra_state = state_dict.get("deepspeed")


class TorchCheckpoints:
    """The way between the states of an engine, in pieces on all ranks, and torch's whole ones."""

    def __init__(self, engine: Any, groups: Any, timeout: float) -> None:
        self.engine, self.optimizer, self.zero = engine, engine.basic_optimizer, engine.optimizer
        self.pieces: dict[Any, Piece] = {}
        self.is_spread = hasattr(self.zero, "dp_process_group")
        self.counts_in_python = type(self.optimizer).__module__.startswith("deepspeed.")
        if self.zero is self.optimizer:  # ZeRO 0 in fp32: whole on all ranks
            if groups is not None:
                self.optimizer.param_groups[:] = [group for group, _ in groups]  # with those that were empty
            groups = [(group, list(group["params"])) for group in self.optimizer.param_groups]
            if not self.counts_in_python:  # what torch's optimizers do is what is wanted
                return
        refuse_offload(self.zero)
        self.pieces = {piece.parameter: piece for piece in pieces_of(self.zero)}
        self.groups = self._known_groups() if groups is None else groups
        self.must_gather, self.gathered_at = False, -1
        self.gathered: dict[str, Any] | None = None
        self.timeout = timedelta(seconds=timeout)
        self.meeting = dist.new_group(backend="gloo") if self.is_spread else None  # gloo alone can say who is missing
        states = self.optimizer.state
        self._put({parameter: states.pop(parameter) for parameter in self.pieces if parameter in states})
        self._put_extra(getattr(self.optimizer, "extra_state", None))
        self.optimizer.state_dict, self.optimizer.load_state_dict = self.state_dict, self.load_state_dict
        for parameter in engine.module.parameters():
            parameter.torch_checkpoints = self
        for module in engine.module.modules():
            module.register_load_state_dict_post_hook(refresh_after_load)
        if engine.zero_optimization_stage() == 3:
            for module in engine.modules():  # torch 2.3 has two of these hooks with an underscore alone
                module.register_state_dict_pre_hook(meet_before_saving)
                module._register_state_dict_hook(save_whole)
                module._register_load_state_dict_pre_hook(take_part, with_module=True)
        engine.register_forward_pre_hook(self._drop_old)

    def _known_groups(self) -> list[tuple[dict[str, Any], list[Any]]]:
        frozen = [name for name, p in self.engine.module.named_parameters() if not p.requires_grad]
        if frozen:
            raise ValueError(
                f"parameters are frozen, such as {frozen[0]}, and only the optimizer knew whether it counts them: call "
                "groups = parameter_groups(optimizer) before deepspeed.initialize, and "
                "keep_torch_checkpoints(engine, groups) after it"
            )
        members: list[list[Any]] = [[] for _ in self.optimizer.param_groups]
        for parameter, piece in self.pieces.items():
            members[piece.group].append(parameter)
        return list(zip(self.optimizer.param_groups, members))

    def state_dict(self) -> dict[str, Any]:
        """What ``optimizer.state_dict()`` returns now."""
        self.meet("optimizer.state_dict()")
        states, masters = (
            self._fresh("optimizer.state_dict()", "optimizer") if self.must_gather else self._gather(keep=True)
        )
        groups, numbers = self._numbered()
        result: dict[str, Any] = {"state": {}, "param_groups": groups}
        for parameter, state in states.items():
            result["state"][numbers[parameter]] = dict(state)
        if masters:  # of half-precision weights; torch's optimizers ignore the key
            copies = {numbers[parameter]: master for parameter, master in masters.items()}
            result["deepspeed"] = {"fp32_params": copies, "loss_scale": loss_scale_counts(self.zero)}
        return result

    def _numbered(self) -> tuple[list[dict[str, Any]], dict[Any, int]]:
        """The groups' options with numbers for parameters, and the number of each."""
        numbers: dict[Any, int] = {}
        groups = []
        for group, parameters in self.groups:
            first = len(numbers)
            numbers.update({parameter: first + place for place, parameter in enumerate(parameters)})
            options = {key: value for key, value in group.items() if key != "params"}
            groups.append({**options, "params": list(range(first, len(numbers)))})
        return groups, numbers

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """What ``optimizer.load_state_dict()`` does now."""
        ours = [len(parameters) for _, parameters in self.groups]
        given = [len(group["params"]) for group in state_dict["param_groups"]]
        if ours != given:
            raise ValueError(f"the loaded groups have {given} parameters, those of the optimizer have {ours}")
        states = {}
        for (group, parameters), saved in zip(self.groups, state_dict["param_groups"]):
            group.update({key: value for key, value in saved.items() if key != "params"})
            for number, parameter in zip(saved["params"], parameters):
                states[parameter] = state_dict["state"].get(number, {})
        self._put(states)
        self._put_extra(state_dict.get("deepspeed"))
        self.gathered = None

    def gather(self, *, keep: bool, optimizer: bool) -> None:
        """What ``gather_checkpoint`` does."""
        if self.is_spread:
            self.gathered = None
            found: dict[str, Any] = {"optimizer": self._gather(keep=keep)} if optimizer else {}
            parameters = [p for p in self.engine.module.parameters() if hasattr(p, "ds_tensor")]
            found["weights"] = {parameter: whole_weight(parameter, keep=keep) for parameter in parameters}
            self.must_gather, self.gathered_at = True, self.engine.global_steps
            self.gathered = found if keep else None

    def _fresh(self, what: str, key: str) -> Any:
        """What was gathered for this rank."""
        if self.gathered is None or key not in self.gathered or self.gathered_at != self.engine.global_steps:
            raise RuntimeError(
                f"{what}: nothing was gathered for this rank at step {self.engine.global_steps}, and the last time was "
                f"step {self.gathered_at}: call gather_checkpoint(engine) on all ranks right before (with keep=True, "
                "if other ranks save than the first of each node)"
            )
        return self.gathered[key]

    def meet(self, what: str) -> None:
        """Wait until all ranks are here to gather, instead of hanging in that if one does not come."""
        if self.must_gather or self.meeting is None:
            return
        try:
            dist.monitored_barrier(self.meeting, self.timeout)
        except RuntimeError as error:
            raise RuntimeError(
                f"{what} gathers from all ranks, and some did not call it within {self.timeout.total_seconds():.0f} s: "
                "call gather_checkpoint(engine) before, on a line that all ranks reach"
            ) from error

    def _drop_old(self, *_: Any) -> None:
        if self.gathered_at != self.engine.global_steps:
            self.gathered = None

    @torch.no_grad()
    def _gather(self, *, keep: bool) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """States, and fp32 copies of half-precision weights, whole, on the CPU. Empty without ``keep``."""
        states: dict[Any, Any] = {}
        masters: dict[Any, Any] = {}
        inner = self._inner_state()
        for parameter, piece in self.pieces.items():
            state: dict[str, Any] = {}
            for key, value in inner.get(piece.master, {}).items():
                if self._is_per_element(piece, key, value):
                    state[key] = self._whole(piece, value, keep=keep)
                elif torch.is_tensor(value):  # step: one of its own for each parameter, as each counts for itself
                    state[key] = value.clone()
                elif self.counts_in_python:  # FusedAdam without ZeRO counts at the last parameter of a group only
                    state[key] = torch.tensor(float(max(other[key] for other in inner.values() if key in other)))
                else:
                    state[key] = value
            if state and keep:
                states[parameter] = state
            if piece.master.dtype != parameter.dtype:
                masters[parameter] = self._whole(piece, piece.master, keep=keep)
        return states, masters if keep else {}

    def _inner_state(self) -> Any:
        """The state of the optimizer that steps the fp32 copies, by copy."""
        return getattr(self.zero, "optimizer", self.zero).state

    def _is_per_element(self, piece: Piece, key: str, value: Any) -> bool:
        if not torch.is_tensor(value) or value.shape == piece.master.shape:
            return torch.is_tensor(value)
        if value.dim():
            raise NotImplementedError(f"{key} of {type(self.optimizer).__name__} is not one number per element")
        return False

    def _whole(self, piece: Piece, values: torch.Tensor, *, keep: bool) -> torch.Tensor | None:
        whole = torch.zeros(whole_shape(piece.parameter), dtype=values.dtype, device=self.engine.device)
        piece.of_parameter(whole).copy_(piece.of_master(values))
        if self.is_spread:
            dist.all_reduce(whole, group=self.zero.dp_process_group)
        return whole.cpu() if keep else None

    @torch.no_grad()
    def _put(self, states: dict[Any, dict[str, Any]]) -> None:
        """Let the optimizer go on from these states, which are whole; nothing changes if there are none."""
        inner = self._inner_state()
        pieces: dict[torch.Tensor, list[Piece]] = {}
        for piece in self.pieces.values() if states else ():
            pieces.setdefault(piece.master, []).append(piece)
        for master, held in pieces.items():
            before, state = inner.pop(master, {}), {}
            for key in dict.fromkeys(key for piece in held for key in states.get(piece.parameter, {})):
                given = [(piece, states.get(piece.parameter, {}).get(key)) for piece in held]
                state[key] = self._joined(master, key, [(piece, value) for piece, value in given if value is not None])
                if torch.is_tensor(state[key]) and state[key].dim() and torch.is_tensor(before.get(key)):
                    state[key] = before[key].copy_(state[key])  # DeepSpeed may hold views of it
            if state:
                inner[master] = state

    @torch.no_grad()
    def _put_extra(self, extra: dict[str, Any] | None) -> None:
        """Let it go on from these fp32 copies and this loss scale, too."""
        parameters = [parameter for _, members in self.groups for parameter in members]
        for number, master in (extra["fp32_params"] if extra else {}).items():
            piece = self.pieces[parameters[number]]
            piece.of_master(piece.master).copy_(piece.of_parameter(master))
        for name, value in (extra["loss_scale"] if extra else {}).items():
            setattr(loss_scaler_of(self.zero), name, value)

    def _joined(self, master: torch.Tensor, key: str, given: list[tuple[Piece, Any]]) -> Any:
        """One state for a flat master out of those of its parameters."""
        if not given:
            return None
        if key != "step" and all(torch.is_tensor(v) and v.shape == whole_shape(piece.parameter) for piece, v in given):
            joined = torch.zeros_like(master)
            for piece, value in given:
                piece.of_master(joined).copy_(piece.of_parameter(value))
            return joined
        return self._common(key, given)

    def _common(self, key: str, given: list[tuple[Piece, Any]]) -> Any:
        """The one value that a flat master has for its parameters, as ``step`` is."""
        if any(torch.is_tensor(value) and value.dim() for _, value in given):
            raise NotImplementedError(f"{key} of {type(self.optimizer).__name__} is not one number per element")
        value = max((value for _, value in given), key=float)
        if any(float(other) != float(value) for _, other in given):
            warnings.warn(f"{key} differs between parameters of a group: DeepSpeed has one for all", stacklevel=2)
        if self.counts_in_python:
            return int(value)
        if not torch.is_tensor(value):
            return value
        options = self.optimizer.param_groups[given[0][0].group]
        stays = key == "step" and not options.get("fused") and not options.get("capturable")  # where torch keeps it
        return value.clone() if stays else value.to(given[0][0].master.device, copy=True)

    @torch.no_grad()
    def refresh(self, parameter: Any) -> None:
        """Take over a weight into the optimizer's fp32 copy, except for elements that the copy rounds to."""
        piece = self.pieces.get(parameter)
        if hasattr(parameter, "ds_tensor"):
            half = parameter.ds_tensor.data[: parameter.ds_numel if piece is None else piece.count]
            if not is_partitioned(parameter):
                put_part(parameter, parameter.data)
        elif piece is not None:
            half = piece.of_parameter(parameter.data)
        if piece is not None:
            master = piece.of_master(piece.master)
            half = half.to(master.device)
            master.copy_(torch.where(master.to(half.dtype) == half, master, half.to(master.dtype)))

    def weight(self, parameter: Any) -> Any:
        """A weight that ZeRO 3 has partitioned, whole, on the CPU."""
        if self.must_gather:
            return self._fresh("state_dict() of the model", "weights")[parameter]
        return whole_weight(parameter, keep=True)


def refuse_offload(zero: Any) -> None:
    """Raise if states are where they cannot be gathered from."""
    if getattr(zero, "swap_optimizer", False) or getattr(zero, "params_in_nvme_and_cpu", False):
        raise NotImplementedError("what is on NVMe is not gathered: save by engine.save_checkpoint")
    if hasattr(zero, "backup_optimizer"):
        raise NotImplementedError("with an offload ratio below 1 a part of the states is not saved: leave it at 1")


def whole_shape(parameter: Any) -> torch.Size:
    """The shape of a parameter, which is empty itself while ZeRO 3 has it partitioned."""
    shape: torch.Size = getattr(parameter, "ds_shape", parameter.shape)
    return shape


def is_partitioned(parameter: Any) -> bool:
    """Whether ZeRO 3 has taken the parameter apart, outside of forward and of GatheredParameters."""
    return hasattr(parameter, "ds_tensor") and parameter.numel() != parameter.ds_numel


def refresh_after_load(module: Any, *_: Any) -> None:
    """Hook: after a module has loaded weights."""
    for parameter in module.parameters(recurse=False):
        if hasattr(parameter, "torch_checkpoints"):  # not in a copy of the module
            parameter.torch_checkpoints.refresh(parameter)


def meet_before_saving(module: Any, prefix: str, *_: Any) -> None:
    """Hook at ZeRO 3: before a module makes a state dict. The one that was called for it has no prefix."""
    parameter = None if prefix else next(filter(is_partitioned, module.parameters()), None)
    if parameter is not None:
        parameter.torch_checkpoints.meet("state_dict() of the model")


def save_whole(module: Any, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Hook at ZeRO 3: after a module has put its weights into a state dict."""
    for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
        if prefix + name in state_dict and is_partitioned(parameter):
            state_dict[prefix + name] = parameter.torch_checkpoints.weight(parameter)


def take_part(module: Any, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Hook at ZeRO 3: before a module loads its weights. Torch then copies the empty rest of them onto itself."""
    for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
        whole = state_dict.get(prefix + name)
        if whole is not None and is_partitioned(parameter) and whole.shape == parameter.ds_shape:
            put_part(parameter, whole)
            state_dict[prefix + name] = parameter.data


@torch.no_grad()
def put_part(parameter: Any, whole: torch.Tensor) -> None:
    """Put this rank's part of a whole weight into ``Parameter.ds_tensor``, where ZeRO 3 keeps it."""
    size = parameter.partition_numel()
    start = dist.get_rank(parameter.ds_process_group) * size
    part = whole.flatten()[start : start + size]
    parameter.ds_tensor.data[: part.numel()].copy_(part)


def whole_weight(parameter: Any, *, keep: bool) -> torch.Tensor | None:
    """A copy of a weight on the CPU, which ZeRO 3 may have partitioned. Collective."""
    with deepspeed.zero.GatheredParameters([parameter], enabled=is_partitioned(parameter)):
        return parameter.detach().to("cpu", copy=True) if keep else None


def loss_scale_counts(zero: Any) -> dict[str, Any]:
    """Where the dynamic loss scale of an fp16 section stands: its value, steps, last overflow."""
    names = ("cur_scale", "cur_iter", "last_overflow_iter", "cur_hysteresis")
    return {name: getattr(loss_scaler_of(zero), name) for name in names if hasattr(loss_scaler_of(zero), name)}


def loss_scaler_of(zero: Any) -> Any:
    """What counts the loss scale: an object of its own, or the optimizer itself in older releases without ZeRO."""
    return getattr(zero, "loss_scaler", None) or getattr(zero, "loss_scale_config", None) or zero
