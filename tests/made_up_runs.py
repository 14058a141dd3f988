"""Run sets without a run folder: made-up certified runs for the tests of claims."""

import dataclasses
import types

import numpy as np
import pandas as pd

from fabbbr import model
from fabbbr.units import Duration, Rate
from fabbbr_analysis.claims import judge


@dataclasses.dataclass
class Runs:
    experiment: str
    certified: pd.DataFrame
    flows: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)
    intervals: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)
    all_sockets: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)
    manifest: object = dataclasses.field(default_factory=lambda: types.SimpleNamespace(looks=()))

    @property
    def runs(self):
        return self.certified

    def intervals_of(self, cell_ids):
        rows = self.intervals
        return rows.loc[rows.cell_id.isin(cell_ids)] if len(rows) else rows

    def sockets(self, columns=None, cell_ids=None):
        rows = self.all_sockets
        return rows.loc[rows.cell_id.isin(cell_ids), columns] if len(rows) else pd.DataFrame(columns=columns)


def run_rows(conditions, repeat=5, spread=0.01, **columns):
    """``conditions``: dicts of columns; those named in ``columns`` vary by ``spread`` over repetitions."""
    rng = np.random.default_rng(3)
    rows = [
        {
            "cell_id": f"{number}-r{r}", "condition": f"condition {number}", "repetition": r,
            "rate_bps": 100e6,
            "rate_changes": False,
            "rtt_s": 0.1, "mtu_bytes": 1500, "bbr2_variant": None, **condition,
            "goodput_bps": condition.get("goodput_bps", 0.0) * (1 + spread * rng.standard_normal()),
        }
        for number, condition in enumerate(conditions)
        for r in range(1, repeat + 1)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**columns)


def stepped_cell():
    """One CUBIC flow of 160 s whose buffer of 1 BDP is doubled after 80 s."""
    return model.Cell(
        id="c", experiment="knit6_e6", condition="c", axes={}, repetition=1, seed=1, hosts=(),
        switches=(model.Switch(name="s1"),),
        links=(
            model.CellLink(
                name="trunk", a="s1", b="h2",
                bottleneck=model.Bottleneck(
                    rate=Rate.parse("1 Mbit/s"), buffer_bytes=1000, buffer_asked="1 kB", bdp_bytes=1000
                ),
            ),
        ),
        flows=(
            model.Flow(
                index=0, group="g", cca="cubic", sender="h1", receiver="h2", start=Duration.parse("0 s"),
                duration=Duration.parse("160 s"), rtt=Duration.parse("50 ms"),
            ),
        ),
        steps=(model.Step(at=Duration.parse("80 s"), link="trunk", buffer_bytes=2000),),
        sample_period=Duration.parse("1 s"), warm_up=Duration.parse("0 s"),
    )  # fmt: skip


def verdicts(*run_sets, **options):
    return {verdict.id: verdict for verdict in judge(run_sets, **options)}
