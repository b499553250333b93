"""Follows the training of one process: opens and closes windows, measures, and knows when enough was seen."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import gradients, inputs, place, weights
from .job import Job
from .trace import Trace
from .window import Window, closed

OTHERS_SECONDS = 300.0
"""How long a rank that has finished waits for the others, which may evaluate first, so that none loses its partner."""
_INPUTS = 32
_NAMES = 200


def watched(method: Callable[..., Any]) -> Callable[..., Any]:
    """Add the time that a method takes to the harness's own, and keep its errors away from the training."""

    @functools.wraps(method)
    def wrapper(self: Recorder, *arguments: Any, **words: Any) -> Any:
        if not self.active:
            return None
        start = time.perf_counter()
        try:
            return method(self, *arguments, **words)
        except Exception:  # noqa: BLE001 - what cannot be measured must not stop what is measured
            self.trace.problem(method.__name__)
            return None
        finally:
            self.spent += time.perf_counter() - start

    return wrapper


class Recorder:
    """The state of one process. ``torch`` is the module, handed in by the hook on its import."""

    def __init__(self, torch: Any, job: Job) -> None:
        self.torch = torch
        self.job = job
        self.trace = Trace(job.trace)
        self.window = Window()
        self.steps = 0
        self.engine: Any = None
        self.model: Any = None
        self.watch: Any = None
        self.depth = 0
        self.in_engine = False
        self.in_saving = False
        self.spent = 0.0
        self.saved_at: int | None = None
        self.crashed = False
        self.active = True
        self._pid = os.getpid()
        self._optimizers: list[Any] = []
        self._began = False
        self._finished = False
        self._seen: Any = None
        self._trains_in_evaluation = False
        self.config: dict[str, Any] = {}
        self._reached: dict[str, bool] = {}

    # What there is to watch

    def see_optimizer(self, optimizer: Any) -> None:
        """Remember an optimizer as long as the script does."""
        if not any(known() is optimizer for known in self._optimizers):
            self._optimizers.append(weakref.ref(optimizer))

    @property
    def optimizers(self) -> list[Any]:
        """The optimizers that the script has made and still holds."""
        return [found for known in self._optimizers if (found := known()) is not None]

    def take_rank(self) -> None:
        """Learn the rank of this process, as soon as there is a process group."""
        dist = self.torch.distributed
        if dist.is_available() and dist.is_initialized():
            self.trace.rank = dist.get_rank()
        else:
            self.trace.rank = place.rank()

    @property
    def ranks(self) -> int:
        """How many processes train together."""
        dist = self.torch.distributed
        together = dist.is_available() and dist.is_initialized()
        return int(dist.get_world_size()) if together else 1

    # One step

    def before_forward(self, module: Any, arguments: Any, words: Any) -> None:
        """See a call of the wrapped model from outside of any region of the engine."""
        if not self.active or os.getpid() != self._pid:
            return
        if self.depth:  # recomputed activations
            return
        if self.window.stepped:
            self.close()
        self._seen = module
        if self.torch.is_grad_enabled() and (module.training or self._trains_in_evaluation):
            self._at_a_step(module)
        if self.torch.is_grad_enabled():
            self.see_batch(arguments, words)

    def _at_a_step(self, module: Any) -> None:
        """Begin, or end, where all ranks come along: one of them may evaluate alone."""
        self._stop_if_enough()
        if not self._began:
            self.begin(module)

    def look_for_idle(self, module: Any) -> None:
        """Note from now on which parameters of ``module`` the backwards of a step reach on this process."""

        def note(name: str) -> Callable[[Any], None]:
            def reached(_gradient: Any) -> None:
                self._reached[name] = True

            return reached

        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                self._reached[weights.clean(name)] = False
                parameter.register_hook(note(weights.clean(name)))

    @watched
    def inside_forward(self, module: Any) -> None:
        """See under which precision and in which mode the wrapped module is called."""
        if self.depth or not self.torch.is_grad_enabled():
            return
        self.window.modes.add(bool(module.training))
        device = "cpu" if self.job.cpu else "cuda"
        if self.torch.is_autocast_enabled(device):
            self.window.autocast.add(str(self.torch.get_autocast_dtype(device)).removeprefix("torch."))

    @watched
    def see_batch(self, arguments: Any, words: Any) -> None:
        """Take the size of a batch, and numbers that another batch would not have."""
        if self.window.random is None:
            self.window.random = zlib.crc32(self.torch.get_rng_state().numpy())
        size = None
        for tensor in _tensors(self.torch, (arguments, words), _INPUTS):
            if size is None and tensor.dim():
                size = int(tensor.shape[0])
            if tensor.numel() and tensor.layout is self.torch.strided:
                self.window.data.append(inputs.seen(self.torch, tensor))
        self.window.batches.append(size or 0)

    @watched
    def before_backward(self, root: Any, divisor: float = 1.0) -> None:
        """See what is differentiated: ``root``, a tensor, divided by ``divisor`` on its way."""
        if self.window.stepped:
            self.close()
        if not self.window.losses and self._seen is not None:
            self._trains_in_evaluation |= not self._began
            self._at_a_step(self._seen)
        if self.engine is None and not self.window.losses:
            self.window.carry = gradients.norm(self.torch, gradients.parameters_of(self.optimizers))
        unscaled = getattr(root, "dsmigrate_unscaled", root).detach()
        self.window.losses.append(unscaled.double().sum().clone() / divisor)

    @watched
    def before_clipping(self, limit: float | None) -> None:
        """See that gradients are about to be clipped at ``limit`` (None: not by their 2-norm)."""
        if self.window.norm is None:
            self.window.norm = self._norm()
        self.window.limit = limit

    @watched
    def inside_the_engine(self, parameters: Iterable[Any]) -> None:
        """See gradients that are about to be clipped within the step of the engine, by it or by the script."""
        if self.window.norm is None and _whole_gradients(self.engine):
            self.window.norm = gradients.norm(self.torch, parameters)

    @watched
    def before_step(self, optimizer: Any) -> None:
        """See an optimizer that is about to step, with the gradients that it is going to use."""
        if self.is_apart(optimizer):
            return
        if self.engine is not None and not self.in_engine:
            self.window.outside += 1
        if self.engine is not None and self.in_engine and not _whole_gradients(self.engine):
            return
        parameters = gradients.parameters_of([optimizer])
        if self.engine is None and self.window.applied is not None:  # a second optimizer in the same step
            parameters = gradients.parameters_of(self.optimizers)
        found = gradients.norm(self.torch, parameters)
        beside = self.engine is not None and not self.in_engine
        self.window.applied = found if found is not None or beside else 0.0  # beside the engine they may be ZeRO's
        if self.window.norm is None:
            self.window.norm = self.window.applied
        if self.engine is None or self.window.outside:
            self.take_settings([optimizer])

    def is_apart(self, optimizer: Any) -> bool:
        """Whether an optimizer steps nothing of an engine, as the one that tells a gradient scaler of an overflow."""
        if self.engine is None or self.in_engine:
            return False
        own = self.engine.optimizer
        while own is not None:  # ZeRO's is around the script's
            if own is optimizer:
                return False
            own = getattr(own, "optimizer", None)
        trained = {id(parameter) for parameter in self.engine.module.parameters()}
        return not any(id(parameter) in trained for parameter in gradients.parameters_of([optimizer]))

    @watched
    def take_settings(self, optimizers: Iterable[Any]) -> None:
        """Note the settings of the parameter groups with which the step is taken."""
        for optimizer in optimizers:
            name = _class_name(optimizer)
            if name in self.window.optimizer.split("+"):
                continue
            self.window.optimizer = "+".join(filter(None, (self.window.optimizer, name)))
            self.window.groups += [_settings(group) for group in optimizer.param_groups]

    def after_step(self, *, skipped: bool = False) -> None:
        """See that a step is done; what follows until the next forward or backward still belongs to it."""
        self.window.stepped = True
        self.window.skipped |= skipped

    @watched
    def close(self) -> None:
        """Write the record of the step."""
        waited = self._await_device()
        window, self.window = self.window, Window()
        window.idle = [name for name, reached in self._reached.items() if not reached][:_NAMES]
        self._reached = dict.fromkeys(self._reached, False)
        now = time.perf_counter()
        self.trace.write(
            "step", step=self.steps, seconds=now - window.started, overhead=self.spent, time=now, **closed(window)
        )
        self.steps += 1
        self.spent = -waited  # what a GPU still had to compute is no cost of the harness

    def _await_device(self) -> float:
        """Return the seconds until a GPU has computed what it was given; reading the losses would wait for it too."""
        if self.job.cpu or not self.torch.cuda.is_available():
            return 0.0
        start = time.perf_counter()
        self.torch.cuda.synchronize()
        return time.perf_counter() - start

    def _norm(self) -> float | None:
        found = gradients.norm(self.torch, gradients.parameters_of(self.optimizers))
        if found is not None and self.window.scale and not self.window.unscaled:
            return found / self.window.scale
        return found

    # Begin and end

    @watched
    def begin(self, model: Any) -> None:
        """Write what is known before the first forward, the weights included."""
        self._began = True
        self.model = model
        self.take_rank()
        self.trace.write("begin", **self.setting(), weights=weights.sketch(self.torch, model, self.gather))

    def setting(self) -> dict[str, Any]:
        """Return what kind of run this is."""
        found: dict[str, Any] = {
            "kind": "plain" if self.engine is None else "deepspeed",
            "ranks": self.ranks,
            "torch": str(self.torch.__version__),
            "device": "cpu" if self.job.cpu else self.torch.cuda.get_device_name(),
            "dropout": _has_dropout(self.model),
        }
        if self.engine is None:
            return found
        return {**found, **self.config, **_engine_setting(self.engine), "master_apart": self._master_apart()}

    def _master_apart(self) -> float | None:
        """Return how far the weights lie from the copy that ZeRO steps, relatively; collective."""
        if not 1 <= int(self.engine.zero_optimization_stage()) <= 3:
            return None
        try:
            from deepspeed.utils import safe_get_full_fp32_param  # noqa: PLC0415 - it made the engine
        except ImportError:  # before 0.8
            return None
        try:
            return self._from_the_master(safe_get_full_fp32_param)
        except Exception:  # noqa: BLE001 - states that this release cannot gather, of all ranks alike
            self.trace.problem("master weights")
            return None

    def _from_the_master(self, master_of: Callable[[Any], Any]) -> float:
        far = total = 0.0
        for parameter in self.engine.module.parameters():
            master = master_of(parameter) if parameter.requires_grad else None
            with self.gather(parameter):
                if master is not None and master.numel() == parameter.numel():
                    own = parameter.detach().float().reshape(-1)
                    far += float((own - master.to(own.device).reshape(-1)).double().square().sum())
                    total += float(own.double().square().sum())
        return float((far / total) ** 0.5) if total else 0.0

    @contextlib.contextmanager
    def gather(self, parameter: Any) -> Iterator[None]:
        """Make the whole of a parameter visible that ZeRO 3 has partitioned; collective."""
        if not hasattr(parameter, "ds_id"):
            yield
            return
        import deepspeed  # noqa: PLC0415 - it made the parameter

        with deepspeed.zero.GatheredParameters([parameter]):
            yield

    def finish(self, why: str) -> None:
        """Write the last records, once: the open window, the weights, and why the run ends here."""
        if self._finished or self.crashed or os.getpid() != self._pid or not self._began:
            return
        self._finished = True
        if self.window.stepped:
            self.close()
        self._write_end(why)
        self.active = False

    @watched
    def _write_end(self, why: str) -> None:
        found = weights.sketch(self.torch, self.model, self.gather) if self.model is not None else {}
        self.trace.write("end", why=why, steps=self.steps, saved_at=self.saved_at, weights=found)
        self.trace.mark("end")

    def _stop_if_enough(self) -> None:
        if self.steps >= self.job.steps:
            self.leave("steps")
        if self.job.save_after is not None and self._is_saved():
            self.leave("saved")

    def _is_saved(self) -> bool:
        return self.steps >= (self.job.save_after or 0) and any(
            self.trace.marked("saved", rank) for rank in range(self.ranks)
        )

    @watched
    def see_save(self, path: object) -> None:
        """See a checkpoint that is written."""
        steps = self.steps + self.window.stepped
        self.trace.write("save", path=_file_name(path), steps=steps)
        if self.job.save_after is not None and steps >= self.job.save_after:
            self.saved_at = steps
            self.trace.mark("saved")

    def leave(self, why: str) -> None:
        """End this process here, with everything written and in step with the other ranks."""
        self.finish(why)
        self.trace.wait("end", self.ranks, OTHERS_SECONDS)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(0)


def _file_name(path: object) -> str:
    """Return the whole path of a file or folder, given by its name or open; "" for what has none."""
    name = path if isinstance(path, os.PathLike) else getattr(path, "name", path)
    return os.path.abspath(os.fsdecode(name)) if isinstance(name, (str, bytes, os.PathLike)) else ""  # noqa: PTH100


def _tensors(torch: Any, found: Any, limit: int) -> list[Any]:
    """Return the first tensors in nested arguments, in a fixed order."""
    tensors: list[Any] = []
    waiting = [found]
    while waiting and len(tensors) < limit:
        item = waiting.pop(0)
        if isinstance(item, torch.Tensor):
            tensors.append(item)
        elif isinstance(item, dict):
            waiting = [*(item[key] for key in sorted(item, key=str)), *waiting]
        elif isinstance(item, (list, tuple)):
            waiting = [*item, *waiting]
        elif hasattr(item, "__dict__") and not callable(item):
            waiting = [*(one for _, one in sorted(vars(item).items())), *waiting]
    return tensors


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a parameter group that are numbers."""
    found: dict[str, Any] = {"parameters": len(group["params"])}
    for name in ("lr", "weight_decay", "momentum", "betas", "eps", "nesterov", "dampening", "alpha"):
        if name in group and group[name] is not None:
            item = group[name]
            found[name] = [float(one) for one in item] if isinstance(item, (list, tuple)) else float(item)
    return found


def _class_name(optimizer: Any) -> str:
    return type(optimizer).__name__


def _has_dropout(model: Any) -> bool:
    if model is None:
        return False
    named = [(type(module).__name__, module) for module in model.modules()]
    return any(getattr(module, "p", 0) or "Path" in name for name, module in named if "Drop" in name)


def _whole_gradients(engine: Any) -> bool:
    """Whether an optimizer that steps inside of the engine sees the whole gradients, in full precision."""
    return not (engine.zero_optimization() or engine.fp16_enabled() or engine.bfloat16_enabled())


def _engine_setting(engine: Any) -> dict[str, Any]:
    managed = getattr(engine, "managed_gradient_accumulation", None)
    return {
        "deepspeed": sys.modules["deepspeed"].__version__,
        "zero_stage": int(engine.zero_optimization_stage()),
        "gradient_accumulation_steps": int(engine.gradient_accumulation_steps()),
        "managed": bool(managed()) if callable(managed) else True,
        "gradient_clipping": float(engine.gradient_clipping() or 0.0),
        "half": "fp16" if engine.fp16_enabled() else "bf16" if engine.bfloat16_enabled() else None,
        "engine_scheduler": type(engine.lr_scheduler).__name__ if engine.lr_scheduler is not None else None,
    }
