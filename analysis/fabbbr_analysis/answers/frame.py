"""The rows of an answer as a table, for a notebook or a spreadsheet."""

from __future__ import annotations

import pandas as pd

from fabbbr_analysis.answers.records import Answer

_COLUMNS = (
    "condition", "varied", "phase", "group", "cca", "n_flows", "metric", "mean", "low", "high", "n", "method",
    "over", "difference", "difference_low", "difference_high", "paired", "verdict",
)  # fmt: skip


def as_frame(answer: Answer) -> pd.DataFrame:
    """One row per condition, phase, group and metric, in the order of the answer.

    Returns
    -------
    DataFrame
        The mean with its 95 % interval in the unit of the metric (a column of table ``groups``), ``n`` runs
        and the ``method`` of the interval. Where the metric decides who wins, also ``over`` which group (or
        congestion control) the ``difference`` is, with its interval, whether it is ``paired`` by run, and
        the ``verdict``: ``ahead``, ``behind``, ``alike`` or ``unclear``.
    """
    rows = []
    for index, row in enumerate(answer.rows):
        lead = answer.leads.get(index)
        for metric, found in row.values.items():
            one: dict[str, object] = {
                "condition": row.condition, "varied": row.variant, "phase": row.phase, "group": row.group,
                "cca": row.cca, "n_flows": row.n_flows, "metric": metric, "mean": found.value,
                "low": found.low, "high": found.high, "n": found.n, "method": found.method,
            }  # fmt: skip
            if lead is not None and lead.column == metric:
                one |= {
                    "over": lead.over.group if lead.together else lead.over.rival,
                    "difference": lead.difference.value, "difference_low": lead.difference.low,
                    "difference_high": lead.difference.high, "paired": lead.paired, "verdict": lead.verdict,
                }  # fmt: skip
            rows.append(one)
    return pd.DataFrame(rows, columns=list(_COLUMNS))
