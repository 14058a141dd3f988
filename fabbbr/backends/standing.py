"""Machines that stand already as a place for cells: a slice of a testbed, of this host, of hosts in a lab."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fabbbr.backends.base import OwnControl, Report, Task, refuse_kernel
from fabbbr.backends.channel import Channel
from fabbbr.backends.machines import carry_out
from fabbbr.backends.own_controls import OwnControls
from fabbbr.errors import PlaceLostError, UsageError
from fabbbr.model import Cell
from fabbbr.testbed import Testbed


class StandingMachines:
    """The machines of ``testbed`` as a backend; ``channels`` is machine → the way there.

    ``ask`` is the command that says how they are, for whoever finds them out of reach.
    """

    def __init__(self, testbed: Testbed, channels: Mapping[str, Channel], ask: str) -> None:
        self.testbed = testbed
        self._channels = channels
        self._ask = ask
        self._own = OwnControls()

    def with_kernel(self, kernel: str | None, /) -> Testbed:
        """As it is."""
        return self.testbed if kernel is None else refuse_kernel(kernel, "the kernel of a slice's machines")

    def cells_at_once(self, asked: int | None, _cells: Sequence[Cell], /) -> int:
        """One: they would share machines and paths."""
        if asked is not None and asked > 1:
            message = f"--jobs {asked}: one cell at a time has the machines of a slice; leave --jobs out"
            raise UsageError(message)
        return 1

    def take_in(self, controls: Sequence[OwnControl], tell: Callable[[str], None], /) -> None:
        """On the machines of their senders."""
        for control in controls:
            machines = {self.testbed.machine_of(sender): None for sender in control.senders}
            for name in machines:
                self._own.add(control, self._channels[name], f"the kernel of {name}", tell)

    def execute(self, task: Task) -> Report:
        """A part on each machine."""
        try:
            report = carry_out(task, self.testbed, self._channels)
        except PlaceLostError as error:
            message = f"{error}; '{self._ask}' says what is still there"
            raise PlaceLostError(message) from error
        finally:
            if task.job.modules:
                self._own.after_cell()
        return replace(report, options=report.options | self._own.options(task.job.modules))

    def close(self) -> None:
        """The machines stay as they are, without the congestion controls of this run."""
        self._own.close()
