"""The original against itself: what it does not repeat is noise, and says nothing about a conversion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from dsmigrate.verify import distance
from dsmigrate.verify.compare import compare
from dsmigrate.verify.failures import headline
from dsmigrate.verify.model import SILENT, Comparison, Noise, Run, VerifyError

_SAME = 1e-12


@dataclass(slots=True)
class Control:
    """Trains the ``original`` again with ``again``, for so many steps, where there is a difference to explain.

    All stages share the longest of these runs. One that is the same bit by bit ends with the step at which a conversion
    has parted: nothing else is asked of it.
    """

    original: Run
    again: Callable[[int], Run]
    factor: float = 1.0
    _known: Noise = field(default=SILENT)

    def noise(self, found: Comparison) -> Noise:
        """Return how far the original repeats itself, up to the first difference that was found at least.

        Raises VerifyError where it does not train a second time.
        """
        first = found.first
        every = len(self.original.steps)
        steps = every if first is None or first.step is None else first.step + 1
        if self._known.steps < steps:
            self._known = self._made(steps)
            if not self._known.is_silent and steps < every:
                self._known = self._made(every)
        return self._known

    def _made(self, steps: int) -> Noise:
        run = self.again(steps)
        if not run.is_complete:
            raise VerifyError(f"the original does not repeat itself: it trains once, and then {headline(run)}")
        before = self.original
        if steps < len(before.steps):
            before = replace(before, steps=before.steps[:steps], end=())
        found = compare(before, run, self.factor, is_conversion=False)
        reason = next(_reasons(before, run)) if found.differences else ""
        return Noise(found.errors, found.differences, steps, reason)


def _reasons(before: Run, again: Run) -> Iterator[str]:
    """Yield why two runs of one script part, the first of what leads to the others first."""
    if distance.difference(before.start, again.start) > _SAME:
        yield "the weights differ before the first step: they are drawn from what no seed reaches"
    for a, b in zip(before.steps, again.steps, strict=False):
        if distance.inputs(a, b):
            yield (
                f"other inputs go into the model from step {a.index + 1} on: what draws or orders them is not seeded "
                "(as numpy.random.default_rng() is not), reads the clock, or runs in threads"
            )
        if a.rates != b.rates:
            yield f"the learning rate differs from step {a.index + 1} on: it follows the clock, or a random number"
        if (a.samples, a.backwards) != (b.samples, b.backwards):
            yield f"step {a.index + 1} takes {a.samples} samples in one run and {b.samples} in the other"
        if a.random != b.random:
            yield f"the random generator of torch is in another state at step {a.index + 1}"
    if len(before.steps) != len(again.steps):
        yield f"one run takes {len(before.steps)} steps, the other {len(again.steps)}"
    yield (
        "weights, inputs and torch's random generator are the same: random numbers of another generator, the clock, or "
        "sums without a fixed order"
    )
