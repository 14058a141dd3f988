"""Measures how BBRv1, BBRv2 and their rivals behave on a WAN.

In a notebook: ``import fabbbr as fb``, then ``run = fb.run("cardwell_f10", quick=True)`` and ``run``.

================================  ==================================================================
``fb.run(experiment)``            run an experiment, or what is missing of it → a run
``fb.plan(experiment)``           its cells and what they cost, without running anything
``fb.open(path)``                 a run that is there; ``fb.open_runs(paths)`` for several
``fb.experiments()``              the bundled experiments; ``fb.list_experiments()`` is the same
``fb.show_experiment(name)``      the text of one
``fb.list_runs(folder)``          the runs that are there; ``fb.list_slices()``: the slices of testbeds
================================  ==================================================================

A run draws itself as a table of conditions under its headline. ``run.runs``, ``run.flows`` and the other
tables are DataFrames; ``run.figure()``, ``run.over_time(cell)``, ``run.compare(other)``,
``run.compare(by="cca")`` and ``run.report()`` do what their names say. ``help(fb.run)`` has every option.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fabbbr.version import __version__

# Not ``open``: whoever writes ``from fabbbr import *`` wants to keep Python's own.
__all__ = [
    "__version__",
    "experiments",
    "list_experiments",
    "list_runs",
    "list_slices",
    "open_runs",
    "plan",
    "run",
    "show_experiment",
]

_MODULES = {
    "experiments": "interactive.listings",
    "list_experiments": "interactive.listings",
    "list_runs": "interactive.listings",
    "list_slices": "interactive.listings",
    "open": "interactive.running",
    "open_runs": "laboratory",
    "plan": "interactive.running",
    "run": "interactive.running",
    "show_experiment": "interactive.listings",
}
"""Name → where it is; imported when it is asked for: ``fabbbr --help`` must be instant."""

if TYPE_CHECKING:
    from fabbbr.interactive.listings import experiments, list_runs, list_slices, show_experiment
    from fabbbr.interactive.listings import experiments as list_experiments
    from fabbbr.interactive.running import open as open  # noqa: A004 - fb.open
    from fabbbr.interactive.running import plan, run
    from fabbbr.laboratory import open_runs


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the attribute is
    if name not in _MODULES:
        message = f"module 'fabbbr' has no attribute {name!r}"
        raise AttributeError(message)
    from importlib import import_module

    return getattr(import_module(f"fabbbr.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, "open"})


class _Fabbbr(ModuleType):
    """``fabbbr.plan`` is a package too, which the import system would put in the place of the function."""

    @property
    def plan(self) -> Any:  # noqa: ANN401 - the function
        return __getattr__("plan")

    @plan.setter
    def plan(self, package: ModuleType) -> None:
        """Leave the function there; ``from fabbbr.plan import …`` asks ``sys.modules``."""


sys.modules[__name__].__class__ = _Fabbbr
