"""What a datasheet asks of a congestion control: its experiments, and a panel for each answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Better: TypeAlias = Literal["more", "less"] | float
"""Which way is better; a number: the nearer to it."""

FAIR = 0.5
"""Of two flows that share a link."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A panel: one quantity over one axis."""

    title: str
    experiment: str
    """Its name among the datasheet's experiments."""
    axis: str
    """What is varied from left to right; empty where nothing is."""
    column: str
    """Of table ``runs``, or of table ``groups`` where a group is named."""
    group: str = ""
    phase: Literal["whole", "last", "first step", "last step"] = "whole"
    """Of a group: which of its phases."""
    held: Mapping[str, str] = field(default_factory=dict)
    """Other axes → the value that is looked at."""
    unit: str
    factor: float
    """From the unit of the column to the one shown."""
    better: Better
    most: float | None = None
    """The largest value that the quantity can have, in the unit of the column."""


PANELS = (
    Asked(
        title="Random loss", experiment="loss", axis="loss",
        column="utilisation", unit="% of the link", factor=100, better="more", most=1.0,
    ),
    Asked(
        title="Distance", experiment="distance", axis="rtt",
        column="utilisation", unit="% of the link", factor=100, better="more", most=1.0,
    ),
    Asked(
        title="Rate", experiment="rate", axis="rate",
        column="utilisation", unit="% of the link", factor=100, better="more", most=1.0,
    ),
    Asked(
        title="Size of the buffer", experiment="buffer", axis="buffer",
        column="utilisation", unit="% of the link", factor=100, better="more", most=1.0,
    ),
    Asked(
        title="Latency under load", experiment="buffer", axis="buffer",
        column="rtt_p95_s", unit="ms, 95th percentile of RTT", factor=1e3, better="less",
    ),
    Asked(
        title="Retransmitted", experiment="buffer", axis="buffer",
        column="retransmit_ratio", unit="% of bytes", factor=100, better="less", most=1.0,
    ),
    Asked(
        title="Beside itself", experiment="itself", axis="buffer",
        column="share", group="second", phase="last", unit="% for the later",
        factor=100, better=FAIR, most=1.0,
    ),
    Asked(
        title="Beside CUBIC", experiment="rivals", axis="buffer", held={"rival": "cubic"},
        column="share", group="it", phase="last", unit="% for it", factor=100, better=FAIR, most=1.0,
    ),
    Asked(
        title="Beside Reno", experiment="rivals", axis="buffer", held={"rival": "reno"},
        column="share", group="it", phase="last", unit="% for it", factor=100, better=FAIR, most=1.0,
    ),
    Asked(
        title="Near and far", experiment="distances", axis="buffer",
        column="share", group="near", phase="last", unit="% for the near",
        factor=100, better=FAIR, most=1.0,
    ),
    Asked(
        title="Start-up", experiment="startup", axis="size",
        column="slowdown_median", group="transfer", unit="times the ideal", factor=1, better="less",
    ),
    Asked(
        title="Short flows beside it", experiment="beside", axis="buffer",
        column="slowdown_median", group="short", unit="times the ideal", factor=1, better="less",
    ),
    Asked(
        title="After the rate fell", experiment="change", axis="",
        column="rtt_p95_s", group="it", phase="first step", unit="ms, 95th percentile of RTT", factor=1e3,
        better="less",
    ),
    Asked(
        title="Rate rises: link full after", experiment="change", axis="",
        column="recovery_s", group="it", phase="last step", unit="s", factor=1, better="less",
    ),
    Asked(
        title="Behind managed queues", experiment="aqm", axis="aqm",
        column="rtt_p95_s", unit="ms, 95th percentile of RTT", factor=1e3, better="less",
    ),
)  # fmt: skip

EXPERIMENTS = tuple(dict.fromkeys(panel.experiment for panel in PANELS))
"""Names of the experiments, in the order of the page."""
