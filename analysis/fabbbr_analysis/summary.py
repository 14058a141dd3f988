"""Tables of results: each condition with its intervals, and what changed between two run sets."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import pandas as pd

from fabbbr.errors import AnalysisError
from fabbbr_analysis import stats
from fabbbr_analysis.stats import Array, Interval

BOUNDED = {
    "utilisation": (0.0, 1.0),
    "retransmit_ratio": (0.0, 1.0),
    "spurious_ratio": (0.0, 1.0),
    "queue_median_bdp": (0.0, math.inf),
    "queue_median_fill": (0.0, 1.0),
    "jain_flows": (0.0, 1.0),
    "jain_groups": (0.0, 1.0),
    "ping_loss_ratio": (0.0, 1.0),
    "datagram_loss_ratio": (0.0, 1.0),
    "datagram_reordered_ratio": (0.0, 1.0),
}
"""Ratios pile up at their bounds, so their intervals come from the bootstrap. All others have Student's t, or
the bootstrap where that goes below 0, which only a metric of a user's own can be, or goodput above what the
link carries."""

COMPARED = (
    "goodput_bps",
    "retransmit_ratio",
    "rtt_median_s",
    "queue_median_bytes",
    "jain_flows",
    "completion_mean_s",
)
"""Few, because each further metric makes every other harder to tell apart (Holm)."""

UNCHANGED_WITHIN = 0.05
"""A ratio whose whole interval is this close to 1 is no change that matters."""
WITHIN = f"within {100 * UNCHANGED_WITHIN:g} %"

SIGNIFICANT = 0.05


class RunSet(Protocol):
    """The part of :class:`fabbbr_analysis.runset.RunSet` that is needed here."""

    @property
    def certified(self) -> pd.DataFrame: ...
    @property
    def shares_draws(self) -> bool: ...


def summarise(runs: pd.DataFrame, metrics: Sequence[str], *, seed: int = 1) -> pd.DataFrame:
    """Summarise table ``runs`` in long form: one row per condition and metric, in the order of ``runs``.

    Returns
    -------
    DataFrame
        ``experiment``, ``condition``, the ``axis_*`` columns, ``metric``, ``n`` (certified runs that have the
        metric; repetitions that are the same in all are one), ``mean`` with its 95 % interval ``low`` to
        ``high``, ``median``, ``sd``, all in the unit of the metric, ``method`` of the interval, ``exact``:
        whether it is the same in all of two repetitions or more (:func:`are_one`), and ``excluded``: cells of
        the condition that are not certified. NaN where there is nothing to give; the interval needs two runs.
    """
    axes = _axes(runs)
    least = {metric: -math.inf if (values_of(runs, metric) < 0).any() else 0.0 for metric in metrics}
    rows: list[dict[str, object]] = []
    for (experiment, condition), cells in runs.groupby(["experiment", "condition"], sort=False):
        certified = cells[cells["status"] == "certified"]
        exact = are_one(certified)
        facts = {
            "experiment": experiment,
            "condition": condition,
            **{axis: cells[axis].iloc[0] for axis in axes},
            "exact": exact,
            "excluded": len(cells) - len(certified),
        }
        counted = certified.head(1) if exact else certified
        for metric in metrics:
            generator = np.random.default_rng([seed, _number(str(condition), metric)])
            rows.append(facts | {"metric": metric} | _summary(counted, metric, least[metric], generator))
    columns = ["experiment", "condition", *axes, "metric", *_SUMMARY_COLUMNS]
    return pd.DataFrame(rows, columns=columns)


_SUMMARY_COLUMNS = ("n", "mean", "low", "high", "median", "sd", "method", "exact", "excluded")


def _summary(
    runs: pd.DataFrame, metric: str, least: float, generator: np.random.Generator
) -> dict[str, object]:
    values = values_of(runs, metric)
    if values.size == 0:
        return {"n": 0, "method": None}
    interval = _mean_interval(values, metric, (least, _most(runs, metric)), generator)
    return {
        "n": interval.n,
        "mean": interval.value,
        "low": interval.low,
        "high": interval.high,
        "median": float(np.median(values)),
        "sd": float(values.std(ddof=1)) if values.size > 1 else None,
        "method": interval.method,
    }


def _mean_interval(
    values: Array, metric: str, within: tuple[float, float], generator: np.random.Generator
) -> Interval:
    if metric not in BOUNDED:
        return stats.mean_within(values, within=within, generator=generator)
    return stats.bootstrap_interval(values, generator=generator, within=BOUNDED[metric])


def _most(runs: pd.DataFrame, metric: str) -> float:
    """What the metric cannot exceed: of goodput, what TCP payload fills of the link, where that is known.

    Of a rate that changes it is a mean over the whole run, and says nothing of a part of it.
    """
    if metric not in ("goodput_bps", "goodput_steady_bps") or "utilisation" not in runs.columns:
        return math.inf
    if metric == "goodput_steady_bps" and "rate_changes" in runs.columns and runs["rate_changes"].any():
        return math.inf
    ceilings = (runs["goodput_bps"] / runs["utilisation"]).astype("float64")
    if not np.isfinite(ceilings).all():
        return math.inf
    return float(max(ceilings.max(), runs[metric].max()))


_TELLING = (
    "goodput_bps", "throughput_bps", "link_rate_bps", "retransmits", "rtt_median_s", "rtt_p95_s",
    "queue_p95_bytes",
)  # fmt: skip
"""Where runs are the same in all of these to the last digit, nothing random is in them."""


def are_one(cells: pd.DataFrame) -> bool:
    """Whether the runs of a condition are one: on a virtual clock, and the same in every telling metric.

    Where nothing is random (no injected loss, no congestion control that draws), another seed changes
    nothing: such repetitions say as much as one, and an interval of no width would be none. Compared with
    others they are what they are, without an error (docs/decisions/0013-how-sure-is-sure.md).
    """
    told = [column for column in _TELLING if column in cells.columns]
    if len(cells) < 2 or len(told) < len(_TELLING) or not (cells["clock"] == "virtual").all():
        return False
    values = cells[told].to_numpy(dtype=np.float64, na_value=np.nan)
    return bool(((values == values[0]) | (np.isnan(values) & np.isnan(values[0]))).all())


def once(cells: pd.DataFrame) -> pd.DataFrame:
    """Keep one of the runs of a condition where they are one, else all."""
    return cells.head(1) if are_one(cells) else cells


def compare(a: RunSet, b: RunSet, *, metrics: Sequence[str] = COMPARED, seed: int = 1) -> pd.DataFrame:
    """Compare certified runs of the conditions that both have; list the others.

    Returns
    -------
    DataFrame
        One row per condition and metric: ``condition``, ``metric``, ``n_a``, ``n_b``, ``mean_a``, ``mean_b``,
        ``difference`` (a - b, with ``difference_low`` and ``difference_high``, Welch's t), ``ratio`` (a / b,
        with ``ratio_low`` and ``ratio_high``, bootstrap; NaN when b delivers zero), ``cliffs_delta`` in
        [-1, 1], ``p_holm`` over all rows, and ``verdict``: ``unchanged`` when the ratio's interval is within
        5 % of 1, else ``changed`` when ``p_holm`` is below 0.05, else ``unclear``. Repetitions that are the
        same in all have no error; where both sides are such, ``exact`` is True, nothing is estimated or
        tested, and the verdict is by the ratio itself. So it is where ``same`` is True: each run of a has one
        of its seed in b, with the same value to the last digit. ``paired`` is True where both sides drew what
        comes at random: then runs of equal seeds had the same, these alone are compared, and the intervals
        are of their pairs (Student's t), and p of their ratio where there is one. A condition of one side has
        a row without metric and ``only in a`` or ``only in b``.
    """
    key = key_of_draws(a, b)
    first, second = by_condition(a.certified), by_condition(b.certified)
    rows = [
        row
        for condition in first
        if condition in second
        for row in _comparisons(condition, first[condition], second[condition], metrics, seed, key=key)
    ]
    compared = _with_verdicts(rows, same="unchanged", different="changed")
    alone = pd.DataFrame(
        [
            *({"condition": name, "verdict": "only in a"} for name in first if name not in second),
            *({"condition": name, "verdict": "only in b"} for name in second if name not in first),
        ],
        columns=list(_COMPARISON_COLUMNS),
    )
    frames = [frame for frame in (compared, alone) if not frame.empty]
    return pd.concat(frames, ignore_index=True) if frames else compared


def compare_along(
    run_set: RunSet,
    by: Sequence[str],
    *,
    against: Sequence[str] | None = None,
    metrics: Sequence[str] = COMPARED,
    seed: int = 1,
) -> pd.DataFrame:
    """Compare conditions of one run set that differ in the axes ``by`` and in nothing else.

    ``against`` holds the value of each of these axes, as written in the experiment file, that the others are
    compared with; None: that of the first condition in the table.

    Returns
    -------
    DataFrame
        As of :func:`compare`, for pairs: ``a`` and ``b``, the values that differ, ``b`` being ``against``;
        ``condition``, what both share; ``verdict`` ``alike``, ``different`` or ``unclear`` by the same rules.
        What comes at random is the same in equal repetitions.

    Raises
    ------
    AnalysisError
        The run set does not vary such an axis, has no such value, or no two conditions differ in it alone.
    """
    runs = run_set.certified
    varied = _varied_axes(runs)
    _require_axes(by, varied)
    held = [axis for axis in varied if axis not in by]
    base = tuple(against) if against is not None else _value(runs.iloc[0], by)
    key = "repetition" if run_set.shares_draws else None
    rows = [
        {"a": _said(other), "b": _said(base)} | row
        for shared, other, first, second in _pairs(runs, by, held, base)
        for row in _comparisons(shared, first, second, metrics, seed, other, key=key)
    ]
    if not rows:
        raise _nothing_to_pair(runs, by, held, base)
    return _with_verdicts(rows, same="alike", different="different")


def _varied_axes(runs: pd.DataFrame) -> list[str]:
    return [name.removeprefix("axis_") for name in _axes(runs) if runs[name].nunique() > 1]


def _require_axes(by: Sequence[str], varied: Sequence[str]) -> None:
    unknown = [axis for axis in by if axis not in varied]
    if unknown or not by:
        message = (
            f"certified runs do not vary {', '.join(unknown) or 'nothing'}; "
            f"they vary {', '.join(varied) or 'nothing, so there is nothing to compare'}"
        )
        raise AnalysisError(message)


def _value(row: pd.Series[str], axes: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row[f"axis_{axis}"]) for axis in axes)


def _said(value: Sequence[str]) -> str:
    return ", ".join(value)


def _pairs(
    runs: pd.DataFrame, by: Sequence[str], held: Sequence[str], base: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...], pd.DataFrame, pd.DataFrame]]:
    """What is shared, the other value, its runs, and those of ``base``."""
    found: dict[str, dict[tuple[str, ...], pd.DataFrame]] = {}
    for _, cells in runs.groupby("condition", sort=False):
        first = cells.iloc[0]
        shared = ", ".join(f"{axis} {text}" for axis, text in zip(held, _value(first, held), strict=True))
        found.setdefault(shared, {})[_value(first, by)] = cells
    for shared, by_value in found.items():
        for other, cells in by_value.items():
            if base in by_value and other != base:
                yield shared, other, cells, by_value[base]


def _nothing_to_pair(
    runs: pd.DataFrame, by: Sequence[str], held: Sequence[str], base: tuple[str, ...]
) -> AnalysisError:
    values = list(dict.fromkeys(_value(row, by) for _, row in runs.iterrows()))
    if base not in values:
        said = "; ".join(map(_said, values))
        return AnalysisError(f"{', '.join(by)} has no value {_said(base)!r}; it has {said}")
    return AnalysisError(
        f"no two conditions differ in {', '.join(by)} alone and have a metric in common; "
        f"name what changes with it too (there are {', '.join(held) or 'no other axes'})"
    )


_COMPARISON_COLUMNS = (
    "condition", "metric", "n_a", "n_b", "mean_a", "mean_b",
    "difference", "difference_low", "difference_high", "ratio", "ratio_low", "ratio_high",
    "cliffs_delta", "p_holm", "exact", "same", "paired", "verdict",
)  # fmt: skip


def _comparisons(  # noqa: PLR0913 - one per thing that a row hangs on
    condition: str,
    a: pd.DataFrame,
    b: pd.DataFrame,
    metrics: Sequence[str],
    seed: int,
    of: Sequence[str] = (),
    *,
    key: str | None,
) -> Iterator[dict[str, object]]:
    """Compare the metrics that both sides have; pair by pair where runs with the same ``key`` drew alike."""
    exact = are_one(a) and are_one(b)
    for metric in metrics:
        pairs = pairs_of(a, b, metric, key=key)
        values = values_of(a, metric), values_of(b, metric)
        if not all(side.size for side in values):
            continue
        generator = np.random.default_rng([seed, _number(" ".join((condition, *of)), metric)])
        row = _paired_comparison(pairs) if pairs else _comparison(*values, generator)
        row |= {"condition": condition, "metric": metric, "paired": bool(pairs)}
        same = _same_in_every_run(a, b, metric)
        if same:
            row |= {"difference_low": 0.0, "difference_high": 0.0}
            row |= {end: row["ratio"] for end in ("ratio_low", "ratio_high") if "ratio" in row}
        if same or exact:
            row["p_holm"] = None
        yield row | {"exact": same or exact, "same": same}


def _same_in_every_run(a: pd.DataFrame, b: pd.DataFrame, metric: str) -> bool:
    """Whether both sides have runs of the same seeds, and of each seed the same value."""
    if "seed" not in a.columns or "seed" not in b.columns:
        return False
    first, second = (dict(zip(side["seed"], side[metric], strict=True)) for side in (a, b))
    return len(first) == len(a) and len(second) == len(b) and first == second


def key_of_draws(a: RunSet, b: RunSet) -> str | None:
    """The column by which runs of two run sets drew the same; None where nothing comes at random."""
    return "seed" if a.shares_draws and b.shares_draws else None


def pairs_of(a: pd.DataFrame, b: pd.DataFrame, metric: str, *, key: str | None) -> list[tuple[float, float]]:
    """What two sides have of a metric in runs with the same ``key``, which drew the same.

    Nothing without a key, and of fewer than two such runs: they count as independent.
    """
    if key is None or key not in a.columns or key not in b.columns:
        return []
    first, second = (side.dropna(subset=[metric]).set_index(key)[metric].astype(float) for side in (a, b))
    both = first.to_frame("a").join(second.to_frame("b"), how="inner")
    return list(both.itertuples(index=False, name=None)) if len(both) > 1 and both.index.is_unique else []


def _comparison(a: Array, b: Array, generator: np.random.Generator) -> dict[str, object]:
    difference = stats.difference_of_means(a, b)
    row = _of_both_sides(a, b) | {
        "difference": difference.value,
        "difference_low": difference.low,
        "difference_high": difference.high,
        "p_holm": stats.welch_p(a, b),
    }
    if (b > 0).all():
        ratio = stats.ratio_of_means_interval(a, b, generator=generator)
        row |= {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high}
    return row


def _paired_comparison(pairs: Sequence[tuple[float, float]]) -> dict[str, object]:
    a, b = np.asarray(pairs, dtype=np.float64).T
    found = stats.paired_difference(pairs)
    assert found is not None, "one pair is none"
    low, high = found.limits()
    row = _of_both_sides(a, b) | {
        "difference": found.value,
        "difference_low": low,
        "difference_high": high,
        "p_holm": found.p,
    }
    change = stats.paired_change(pairs) if (b > 0).all() else None
    if change is not None:
        least, most = change.limits()
        row |= {"ratio": 1 + change.value, "ratio_low": max(1 + least, 0.0), "ratio_high": 1 + most}
        row |= {"p_holm": change.p}
    return row


def _of_both_sides(a: Array, b: Array) -> dict[str, object]:
    return {
        "n_a": a.size,
        "n_b": b.size,
        "mean_a": float(a.mean()),
        "mean_b": float(b.mean()),
        "cliffs_delta": stats.cliffs_delta(a, b),
    }


def _with_verdicts(found: Sequence[dict[str, object]], *, same: str, different: str) -> pd.DataFrame:
    """Adjust the p values for one another and decide; ``same`` and ``different`` are what that is called."""
    pair = ("a", "b") if found and "a" in found[0] else ()
    rows = pd.DataFrame(found, columns=[*pair, *_COMPARISON_COLUMNS])
    tested = rows["p_holm"].notna()
    adjusted = pd.Series(np.nan, index=rows.index, dtype=float)
    adjusted[tested] = stats.holm(rows.loc[tested, "p_holm"].to_numpy(dtype=np.float64))
    exact = rows["exact"].astype(bool)
    low, high = (rows[end].astype(float) for end in ("ratio_low", "ratio_high"))
    within = (low >= 1 - UNCHANGED_WITHIN) & (high <= 1 + UNCHANGED_WITHIN)
    none = (rows["difference"] == 0) & (rows["difference_low"] == rows["difference_high"])
    verdict = np.select(
        [within | none, exact | (adjusted < SIGNIFICANT)], [same, different], default="unclear"
    )
    return rows.assign(p_holm=adjusted, verdict=verdict)


def _axes(runs: pd.DataFrame) -> list[str]:
    return [column for column in runs.columns if column.startswith("axis_")]


def by_condition(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Condition → its rows of ``runs``, in the order in which conditions come."""
    return {str(name): rows for name, rows in runs.groupby("condition", sort=False)}


def values_of(runs: pd.DataFrame, metric: str) -> Array:
    """Keep the runs that have the metric."""
    return np.asarray(runs[metric].dropna().to_numpy(dtype=np.float64), dtype=np.float64)


def _number(condition: str, metric: str) -> int:
    """Give each condition and metric draws of its own, whatever else is in the table."""
    return zlib.crc32(f"{condition}\0{metric}".encode())
