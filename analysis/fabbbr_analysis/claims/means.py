"""What a formula sees of samples: the means over runs.

A formula is arithmetic on condition means that works elementwise. Given the means of the runs it yields one
number; given the means of 10 000 resamples of the runs it yields 10 000, whose spread is the interval of the
whole formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from fabbbr_analysis.claims.observed import Observable
from fabbbr_analysis.claims.sample import Array, Key, MissingConditionError, Sample, key_of
from fabbbr_analysis.stats import mean, means_of_resamples


@dataclass(kw_only=True)
class Means:
    """The means that a formula reads, by quantity and condition.

    It remembers what was read, so that the verdict can tell how many runs it rests on.
    """

    samples: Mapping[Observable, Sample]
    """Quantity → sample."""
    reduce: Callable[[Array], Array] = mean
    read: dict[tuple[Observable, Key], Array] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def resampled(cls, samples: Mapping[Observable, Sample], generator: np.random.Generator) -> Means:
        """Take the means of 10 000 resamples of the runs of each condition."""
        return cls(samples=samples, reduce=lambda runs: means_of_resamples(runs, generator))

    def mean(self, quantity: Observable, coordinates: Key) -> Array:
        """Mean of a quantity in one condition; raise MissingConditionError when it was not run."""
        key, sample = key_of(*coordinates), self.samples[quantity]
        if key not in sample.runs:
            message = f"no certified run of {self._name(quantity, key)}"
            raise MissingConditionError(message)
        if (quantity, key) not in self.read:
            self.read[quantity, key] = self.reduce(sample.runs[key])
        return self.read[quantity, key]

    def keys(self, quantity: Observable) -> tuple[Key, ...]:
        """List the conditions in which a quantity was observed."""
        return tuple(self.samples[quantity].runs)

    def remark(self, text: str) -> None:
        """Note what a reader of the verdict must know; twice is once."""
        if text not in self.remarks:
            self.remarks.append(text)

    def smallest(self) -> tuple[int, str]:
        """Count the runs of the condition with the fewest among those read, and its name."""
        quantity, key = min(self.read, key=lambda each: self.samples[each[0]].runs[each[1]].size)
        return self.samples[quantity].runs[key].size, self._name(quantity, key)

    def conditions(self) -> tuple[str, ...]:
        """Name the conditions that were read, as the plan does."""
        known = (self.samples[quantity].conditions.get(key) for quantity, key in self.read)
        return tuple(dict.fromkeys(filter(None, known)))

    def _name(self, quantity: Observable, key: Key) -> str:
        """Name a condition in words, with its experiment when the formula reads several quantities."""
        words = self.samples[quantity].describe(key)
        return words if len(self.samples) == 1 else f"{words} in {quantity.experiment}"
