"""What an experiment varied, read from the ``axis_*`` columns of its runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pandas as pd

from fabbbr.counts import counted
from fabbbr.errors import UnitError
from fabbbr.units import Duration, QueueSize, Rate, Ratio
from fabbbr_analysis.figures.measures import CONDITIONS, ConditionColumn, in_a_sentence
from fabbbr_analysis.wording import article, distinct, listing

_PREFIX = "axis_"
_TITLES = {"aqm": "AQM", "ecn": "ECN", "rtt": "RTT", "mtu": "MTU"}
_SWITCHED = {"true": "on", "false": "off"}
_SINGULAR = ("ss", "us", "is")
"""Words that end so are none of several: of ``cross`` there is no ``cros``."""
_BDP_IS_WHOLE_BYTES = 1e-3
"""A buffer asked in BDP is cut to whole bytes, so the column is a little below what was asked."""


@dataclass(frozen=True, kw_only=True)
class Follower:
    """What has one value for each value of an axis (``zip`` in the experiment file)."""

    title: str
    texts: Mapping[str, str]
    """Value of the axis → its own, both as written."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One varied key with its values in ascending order."""

    key: str
    title: str
    unit: str
    log: bool
    texts: tuple[str, ...]
    """The values as written in the experiment file."""
    shown: tuple[float, ...] | None
    """The same in ``unit``; None when they are names, not numbers."""
    condition: ConditionColumn | None
    """The column of table ``runs`` that holds the value, when there is one."""
    others: tuple[Follower, ...] = ()
    """Quantities that change with this one and not by themselves."""

    @property
    def slug(self) -> str:
        """The second half of a figure's name, such as ``loss`` in ``goodput_by_loss``."""
        return self.condition.slug if self.condition else re.sub(r"\W+", "_", self.key)

    @property
    def label(self) -> str:
        """Title and unit, and what else changes along the axis."""
        own = f"{self.title} ({self.unit})" if self.unit else self.title
        others = [in_a_sentence(other.title) for other in self.others]
        return f"{own}, and with it {listing(others)}" if others else own

    def place_of(self, text: str) -> float | str:
        """Where ``text`` stands on the axis."""
        return text if self.shown is None else self.shown[self.texts.index(text)]


def place_in_words(axes: Sequence[Axis], texts: Sequence[str]) -> str:
    """Where on some axes a condition is, as in ``a buffer of 8 BDP and 10 hops``."""
    return listing([_value_in_words(axis, text) for axis, text in zip(axes, texts, strict=True)])


def places_in_words(axes: Sequence[Axis], places: Sequence[Sequence[str]]) -> str:
    """Several of these, with what all have said once, as in ``4 or 16 flows and a buffer of 8 BDP``."""
    texts = [distinct(at[number] for at in places) for number in range(len(axes))]
    apart = [number for number, each in enumerate(texts) if len(each) > 1]
    if len(apart) < 2:
        return listing([_values_in_words(axis, each) for axis, each in zip(axes, texts, strict=True)])
    held = [_value_in_words(axes[number], each[0]) for number, each in enumerate(texts) if len(each) == 1]
    of_each = (
        place_in_words([axes[number] for number in apart], [at[number] for number in apart]) for at in places
    )
    return listing([*held, ", or ".join(of_each)])


def value_alone(axis: Axis, text: str) -> str:
    """A value of an axis whose name was said before: ``on`` of one that is true, others as written."""
    others = [_switched(other.texts[text]) for other in axis.others]
    return _switched(text) + (f" (and {listing(others)})" if others else "")


def _switched(text: str) -> str:
    return _SWITCHED.get(text, text)


def _values_in_words(axis: Axis, texts: Sequence[str]) -> str:
    if axis.others:
        return listing([_value_in_words(axis, text) for text in texts], "or")
    return _named(axis.title, *texts)


def _value_in_words(axis: Axis, text: str) -> str:
    others = [_named(other.title, other.texts[text]) for other in axis.others]
    return _named(axis.title, text) + (f" (and {listing(others)})" if others else "")


def _named(title: str, *texts: str) -> str:
    """As in ``a buffer of 2 packets``, or ``10 hops`` where it is a number of what its name says."""
    name, told = in_a_sentence(title), listing([_switched(text) for text in texts], "or")
    if all(map(str.isdecimal, texts)) and name.endswith("s") and not name.endswith(_SINGULAR):
        return f"{told} {name}" if len(texts) > 1 else counted(int(texts[0]), name.removesuffix("s"))
    return f"{name} {told}" if texts[0] in _SWITCHED else f"{article(name)} {name} of {told}"


def axis_columns(runs: pd.DataFrame) -> list[str]:
    """Return the ``axis_*`` columns in which the runs differ."""
    return [name for name in runs.columns if name.startswith(_PREFIX) and runs[name].nunique() > 1]


def held_to(runs: pd.DataFrame, panel: Mapping[str, str]) -> pd.DataFrame:
    """Return the runs whose axes have the values of ``panel`` (axis key → text)."""
    for key, text in panel.items():
        runs = runs[runs[f"{_PREFIX}{key}"].astype(str) == text]
    return runs


def cca_columns(runs: pd.DataFrame) -> list[str]:
    """Return the ``axis_*`` columns that say which congestion control runs."""
    return [name for name in axis_columns(runs) if names_the_cca(runs, name)]


def variants(runs: pd.DataFrame) -> pd.Series[str]:
    """Which congestion control was varied in each run: ``bbr3``, or ``long=bbr3, cross=cubic`` of several."""
    columns = cca_columns(runs)
    keys = [f"{name.removeprefix(_PREFIX)}=" if len(columns) > 1 else "" for name in columns]
    told = [
        ", ".join(f"{key}{text}" for key, text in zip(keys, row, strict=True))
        for row in runs[columns].to_numpy()
    ]
    return pd.Series(told, runs.index, dtype=str)


def mixes(runs: pd.DataFrame) -> pd.Series[str]:
    """The congestion controls of all flows of each run, and which is which where runs differ in that.

    ``bbr3,cubic [long=bbr3, cross=cubic]`` beside the same two the other way round.
    """
    ccas, which = runs["ccas"].astype(str), variants(runs)
    several = which.groupby(ccas).transform("nunique") > 1
    return ccas.where(~several, ccas + " [" + which + "]")


def varied(runs: pd.DataFrame) -> tuple[Axis, ...]:
    """Return everything but the congestion control that differs, the most varied number first.

    A quantity that only follows another axis (``zip`` in the experiment file) is not one of its own; a name
    is, since it tells apart what no line should join, unless it is another name of the same conditions. Of
    two axes that tell the same conditions apart, the one that the experiment file has first stays.
    """
    columns = [name for name in axis_columns(runs) if name not in cca_columns(runs)]
    as_written = [_axis(runs, name) for name in columns]
    axes = [
        axis
        for place, axis in enumerate(as_written)
        if not any(_say_the_same(runs, axis, before) for before in as_written[:place])
    ]
    ordered = sorted(axes, key=lambda axis: (axis.shown is None, -len(axis.texts), axis.key))
    stay = [
        axis
        for place, axis in enumerate(ordered)
        if not any(_follows(runs, axis, leader) for leader in ordered[:place])
    ]
    return _with_followers(runs, stay, [axis for axis in as_written if axis not in stay])


def _with_followers(runs: pd.DataFrame, stay: Sequence[Axis], gone: Sequence[Axis]) -> tuple[Axis, ...]:
    """Each axis with what follows it, where that is a quantity; what follows several belongs to the first."""
    found: dict[str, list[Follower]] = {axis.key: [] for axis in stay}
    for axis in gone:
        leader = next((leader for leader in stay if _follows(runs, axis, leader)), None)
        if leader is not None:
            pairs = runs[[f"{_PREFIX}{leader.key}", f"{_PREFIX}{axis.key}"]].astype(str).drop_duplicates()
            found[leader.key].append(Follower(title=axis.title, texts=dict(pairs.to_numpy().tolist())))
    return tuple(replace(axis, others=tuple(found[axis.key])) for axis in stay)


def _say_the_same(runs: pd.DataFrame, one: Axis, other: Axis) -> bool:
    """Both numbers or both names, such as an AQM and whether it marks, and each decides the other."""
    alike = (one.shown is None) == (other.shown is None)
    return alike and _decides(runs, one, other) and _decides(runs, other, one)


def _follows(runs: pd.DataFrame, axis: Axis, leader: Axis) -> bool:
    return all(_is_quantity(text) for text in axis.texts) and _decides(runs, leader, axis)


def _decides(runs: pd.DataFrame, axis: Axis, other: Axis) -> bool:
    """Whether every value of an axis stands beside one value of the other."""
    return bool(runs.groupby(f"{_PREFIX}{axis.key}")[f"{_PREFIX}{other.key}"].nunique().max() == 1)


def _is_quantity(text: str) -> bool:
    with suppress(UnitError):
        QueueSize.parse(text)  # packets too, which are of no kind below: how large they are hangs on the path
        return True
    return any(_parse(text, like) is not None for like in _ALIKE)


def names_the_cca(runs: pd.DataFrame, column: str) -> bool:
    """Whether a column says no more than which congestion control ran; a count of 0 may leave some out."""
    found = [text in str(ccas).split(",") for text, ccas in zip(runs[column], runs["ccas"], strict=True)]
    return bool(pd.Series(found, dtype=bool).groupby(runs[column].astype(str).to_numpy()).any().all())


def _axis(runs: pd.DataFrame, column: str) -> Axis:
    """Numbers where a column of ``runs`` or the unit says so, else names."""
    key = column.removeprefix(_PREFIX)
    texts = [str(text) for text in runs[column].dropna().unique()]
    for condition in CONDITIONS:
        values = _values_of(runs, column, condition)
        if values is not None:
            return _numeric(key, condition, values)
    for condition in CONDITIONS:
        sizes = _sizes_of(runs, column, condition) if condition.column in _IN_BYTES else None
        if sizes is not None:
            return _numeric(key, condition, sizes)
    for like in _ALIKE:
        numbers = {text: _parse(text, like) for text in texts}
        if None not in numbers.values():
            return _numeric(key, like, numbers, known=False)
    return Axis(
        key=key,
        title=_title(key),
        unit="",
        log=False,
        texts=tuple(sorted(texts, key=_name_and_numbers)),
        shown=None,
        condition=None,
    )


def _title(key: str) -> str:
    if key.startswith("tcp_"):  # a setting of the kernel
        return key
    return _TITLES.get(key, key.replace("_", " ").capitalize())


def _name_and_numbers(text: str) -> list[tuple[bool, int, str]]:
    """Digits weigh by their value, and come before letters."""
    parts = filter(None, re.split(r"(\d+)", text))
    return [(False, int(part), "") if part.isdecimal() else (True, 0, part) for part in parts]


def _numeric(
    key: str, condition: ConditionColumn, values: Mapping[str, float | None], *, known: bool = True
) -> Axis:
    """An axis in the unit of a condition; ``known`` when it is that condition, and not one of its kind."""
    numbers = {text: value for text, value in values.items() if value is not None}
    texts = tuple(sorted(numbers, key=lambda text: numbers[text]))
    return Axis(
        key=key,
        title=condition.title if known else _title(key),
        unit=condition.unit,
        log=condition.log and numbers[texts[0]] > 0,
        texts=texts,
        shown=tuple(numbers[text] * condition.factor for text in texts),
        condition=condition if known else None,
    )


def _values_of(runs: pd.DataFrame, column: str, condition: ConditionColumn) -> dict[str, float] | None:
    """Map text to value when the column of ``condition`` says the same as the text in every run."""
    if condition.column not in runs.columns:
        return None
    values: dict[str, float] = {}
    for text, held in zip(runs[column].astype(str), runs[condition.column], strict=True):
        asked = _parse(text, condition)
        if asked is None or pd.isna(held):
            return None
        if not math.isclose(asked, float(held), rel_tol=_BDP_IS_WHOLE_BYTES):
            return None
        values[text] = asked
    return values


def _sizes_of(runs: pd.DataFrame, column: str, condition: ConditionColumn) -> dict[str, float] | None:
    """As :func:`_values_of` of sizes in different units, each of which has one value in bytes in all runs."""
    needed = [condition.column, "rate_bps", "bdp_bytes", "mtu_bytes"]
    if not set(needed) <= set(runs.columns) or runs[needed].isna().any(axis=None):
        return None
    values: dict[str, float] = {}
    units = set()
    for text, (held, *measures) in zip(runs[column].astype(str), runs[needed].to_numpy(), strict=True):
        try:
            size = QueueSize.parse(text)
        except UnitError:
            return None
        asked = _bytes_of(size, *measures)
        if (
            not math.isclose(asked, held, rel_tol=_BDP_IS_WHOLE_BYTES)
            or values.setdefault(text, held) != held
        ):
            return None
        units.add((size.packets is None, size.bdp is None, size.time is None))
    return values if len(units) > 1 else None


def _bytes_of(size: QueueSize, rate_bps: float, bdp_bytes: float, mtu_bytes: float) -> float:
    if size.bdp is not None:
        return float(size.bdp) * bdp_bytes
    return float(size.bytes(rate=Rate(int(rate_bps)), rtt=Duration(0), mtu_bytes=int(mtu_bytes)))


def _parse(text: str, condition: ConditionColumn) -> float | None:
    """Return the value of ``text`` in the base unit of the condition's column; None when it has none."""
    try:
        return _PARSERS.get(condition.column, _count)(text)
    except (UnitError, ValueError):
        return None


def _count(text: str) -> float | None:
    return float(text) if text.isdecimal() else None


def _bdp(text: str) -> float | None:
    bdp = QueueSize.parse(text).bdp
    return None if bdp is None else float(bdp)


def _bytes(text: str) -> float | None:
    size = QueueSize.parse(text).size
    return None if size is None else float(size.bytes)


_PARSERS: Mapping[str, Callable[[str], float | None]] = {
    "loss_ratio": lambda text: Ratio.parse(text).value,
    "reordered_ratio": lambda text: Ratio.parse(text).value,
    "late_s": lambda text: Duration.parse(text).seconds,
    "rtt_s": lambda text: Duration.parse(text).seconds,
    "ack_aggregation_s": lambda text: Duration.parse(text).seconds,
    "duration_s": lambda text: Duration.parse(text).seconds,
    "rate_bps": lambda text: float(Rate.parse(text).bps),
    "rate_reverse_bps": lambda text: float(Rate.parse(text).bps),
    "buffer_reverse_bytes": _bytes,
    "burst_bytes": _bytes,
    "buffer_bdp": _bdp,
    "buffer_bytes": _bytes,
}

_IN_BYTES = ("buffer_bytes", "burst_bytes")
"""What may be asked for in several units, as :class:`QueueSize` reads them."""

_ALIKE = tuple(
    condition
    for column in ("n_flows", "buffer_bdp", "buffer_bytes", "rate_bps", "rtt_s", "loss_ratio")
    for condition in CONDITIONS
    if condition.column == column
)
"""One of each kind of quantity: what else is of that kind, as the size of flows, is shown in its unit."""
