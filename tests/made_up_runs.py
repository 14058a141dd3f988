"""Run sets without a run folder: made-up certified runs for the tests of claims."""

import dataclasses

import numpy as np
import pandas as pd

from fabbbr_analysis.claims import judge


@dataclasses.dataclass
class Runs:
    experiment: str
    certified: pd.DataFrame
    flows: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)
    intervals: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)
    all_sockets: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)
    manifest: object = None

    def sockets(self, columns=None, cell_ids=None):
        rows = self.all_sockets
        return rows.loc[rows.cell_id.isin(cell_ids), columns]


def run_rows(conditions, repeat=5, spread=0.01, **columns):
    """``conditions``: dicts of columns; the values named in ``columns`` vary by ``spread`` over repetitions."""
    rng = np.random.default_rng(3)
    rows = [
        {
            "cell_id": f"{number}-r{r}", "condition": f"condition {number}", "repetition": r, "rate_bps": 100e6,
            "rtt_s": 0.1, "mtu_bytes": 1500, "bbr2_variant": None, **condition,
            "goodput_bps": condition.get("goodput_bps", 0.0) * (1 + spread * rng.standard_normal()),
        }
        for number, condition in enumerate(conditions)
        for r in range(1, repeat + 1)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**columns)


def verdicts(*run_sets, **options):
    return {verdict.id: verdict for verdict in judge(run_sets, **options)}
