"""What the files hold that an experiment names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fabbbr.plan.link_traces import Trace
from fabbbr.plan.step_files import StepFile
from fabbbr.sources import Sources


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Each by the name that the experiment gives it."""

    traces: Mapping[str, Trace] = field(default_factory=dict)
    """Those that ``trace`` names."""
    step_files: Mapping[str, StepFile] = field(default_factory=dict)
    """Those that ``steps`` names."""
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Those of flows that come at random."""
    modules: Mapping[str, Sources] = field(default_factory=dict)
    """Sources that ``cca`` names, by their places as written."""


NOTHING = Beside()
