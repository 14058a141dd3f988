"""How the axes of a condition are named and counted in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AxisWords:
    """A numeric column by which conditions are told apart, as a sentence says it."""

    noun: str
    scale: float = 1.0
    """Shown value = scale × value of the column."""
    unit: str = ""
    smallest: str = "smallest"
    largest: str = "largest"

    def value(self, level: float) -> str:
        """Write a level with its unit."""
        return f"{level * self.scale:g} {self.unit}".rstrip()


_AXES = {
    "loss_ratio": AxisWords(noun="loss", scale=100.0, unit="%"),
    "rate_bps": AxisWords(noun="rate", scale=1e-6, unit="Mbit/s"),
    "rtt_s": AxisWords(noun="RTT", scale=1000.0, unit="ms", smallest="shortest", largest="longest"),
    "buffer_bdp": AxisWords(noun="buffer", unit="BDP"),
    "buffer_bytes": AxisWords(noun="buffer", scale=1e-3, unit="kB"),
    "counted_bdp": AxisWords(noun="buffer", unit="BDP"),
    "n_flows": AxisWords(noun="flows"),
    "n_cubic": AxisWords(noun="CUBIC flows"),
    "n_bbr2": AxisWords(noun="BBRv2 flows"),
    "streams": AxisWords(noun="streams"),
    "mtu_bytes": AxisWords(noun="MTU", unit="bytes"),
}


def axis(column: str) -> AxisWords:
    """Words for a column; one that has none is named as it is."""
    return _AXES.get(column, AxisWords(noun=column))


def coordinate(column: str, value: str | float) -> str:
    """Name one coordinate of a condition.

    >>> coordinate("loss_ratio", 0.01), coordinate("cca", "bbr1")
    ('loss 1 %', 'bbr1')
    """
    if isinstance(value, str):
        return value
    return f"{axis(column).noun} {axis(column).value(value)}"
