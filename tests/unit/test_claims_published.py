"""The formulas on the papers' own numbers: a claim passes there exactly when the register says so.

A published series is a sample with one run per condition. It enters where runs do, behind the observation.
"""

import numpy as np
import pytest

from fabbbr_analysis import models, references
from fabbbr_analysis.claims import Arithmetic, all_claims, papers
from fabbbr_analysis.claims.expression import quantities_in
from fabbbr_analysis.claims.means import Means
from fabbbr_analysis.claims.sample import Sample, key_of

REGISTER = references.load("claims").fillna("").set_index("id")
CLAIMS = {claim.id: claim for claim in all_claims() if claim.id in REGISTER.index}


def sample(axes, rows):
    """``rows`` yields (coordinates…, value)."""
    runs = {key_of(*row[:-1]): np.array([float(row[-1])]) for row in rows}
    assert runs
    return Sample(axes=axes, runs=runs)


def f10(*, over_model=False):
    rows = references.load("cardwell2016_fig10_digitised")
    loss = rows.loss_pct / 100
    value = rows.goodput_mbps / 100
    if over_model:
        value = rows.goodput_mbps * 1e6 / models.cubic_bps(mss_bytes=1448, rtt_s=0.1, loss=loss)
    return sample(("cca", "loss_ratio"), zip(rows.cca, loss, value, strict=True))


def figure8(column="published_goodput_mbps_(pre-loss link departures)"):
    rows = references.load("hsiao_muindi_data").query("experiment == 'figure8'")
    rows = rows[rows.run.str.startswith("official")]
    return sample(
        ("cca", "loss_ratio"),
        zip(rows.cca.replace("bbr", "bbr1"), rows.loss_pct / 100, rows[column], strict=True),
    )


def hsiao(experiment, by):
    """Official rows of an experiment by congestion control, ``by`` (column, scale) and loss."""
    rows = references.load("hsiao_muindi_data").query("experiment == @experiment")
    rows = rows[rows.run.str.startswith("official")]
    axes = [rows.cca.replace("bbr", "bbr1"), *(rows[name] * scale for _, name, scale in by)]
    names = ("cca", *(axis for axis, _, _ in by), "loss_ratio")
    rate = rows["published_goodput_mbps_(pre-loss link departures)"]
    return sample(names, zip(*axes, rows.loss_pct / 100, rate, strict=True))


def hsiao_by_rate():
    return hsiao("experiment1", [("rate_bps", "specified_bw_mbps", 1e6)])


def hsiao_by_cca():
    return hsiao("experiment2", [])


def hsiao_by_rtt():
    return hsiao("experiment3", [("rtt_s", "rtt_ms", 1e-3)])


def every_hsiao_row():
    """All official rows over (1 - loss) × capacity, each a condition of its own.

    Up to 1 Mbit/s the replication's bins are too coarse for a rate.
    """
    rows = references.load("hsiao_muindi_data").query("capacity_mbps > 1")
    rows = rows[rows.run.str.startswith("official")].reset_index()
    over = rows["published_goodput_mbps_(pre-loss link departures)"] / (
        (1 - rows.loss_pct / 100) * rows.capacity_mbps
    )
    return sample(("row", "loss_ratio"), zip(rows.index.astype(str), rows.loss_pct / 100, over, strict=True))


def fabric(figure, y_name):
    return references.load("fabric2023_figures").query("figure == @figure and y_name == @y_name")


def e1(y_name="throughput_gbps", scale=0.1):
    rows = fabric(3, y_name)
    return sample(("cca", "rtt_s"), zip(rows.series, rows.x / 1000, rows.y * scale, strict=True))


def e2(y_name="throughput_gbps"):
    rows = fabric(4, y_name)
    return sample(("cca", "buffer_bdp"), zip(rows.series, rows.x, rows.y, strict=True))


def e3(*, share):
    rows = references.load("fabric2023_figures").query("figure == 6")
    rows = rows.assign(panel_name=rows.condition.str.rsplit(";", n=1).str[-1])
    wide = rows.pivot_table(index=["panel_name", "x"], columns="series", values="y").reset_index()
    value = wide["113ms"] / (wide["113ms"] + wide["61ms"]) if share else wide["fairness"] / 100
    names = wide.panel_name.str.split(" ")
    return sample(("cca", "aqm", "buffer_bdp"), zip(names.str[0], names.str[1], wide.x, value, strict=True))


def e5():
    rows = fabric(8, "throughput_gbps")
    rtt = rows.condition.str.extract(r"RTT(\d+)ms", expand=False).astype(float) / 1000
    return sample(
        ("cca", "rtt_s", "loss_ratio"), zip(rows.series, rtt, rows.x / 100, rows.y / 10, strict=True)
    )


def e6(divisor):
    rows = references.load("fabric2023_fig9_queue")
    bdp_mb = 62.5
    value = rows.median_queue_MB / (bdp_mb if divisor == "bdp" else rows.buffer_MB)
    return sample(
        ("cca", "step", "buffer_bdp"), zip(rows.series, rows.step, rows.buffer_bdp, value, strict=True)
    )


def kfoury(y_name="throughput_mbps", scale=1e-3):
    rows = references.load("kfoury2020_figures").query("figure == 10 and y_name == @y_name")
    buffer = rows.condition.str.extract(r"buffer([\d.]+)BDP", expand=False).astype(float)
    return sample(
        ("cca", "buffer_bdp", "loss_ratio"),
        zip(rows.series, buffer, rows.x / 100, rows.y * scale, strict=True),
    )


def kfoury_over_model():
    runs = kfoury(scale=1e6).runs.items()
    rows = [
        (*key, value[0] / models.cubic_bps(mss_bytes=1448, rtt_s=0.1, loss=key[2]))
        for key, value in runs
        if key[0] == "cubic"
    ]
    return sample(("cca", "buffer_bdp", "loss_ratio"), rows)


def kfoury_retransmissions():
    rows = references.load("kfoury2020_figures").query("figure == 8")
    return sample(("cca", "n_flows"), zip(rows.series, rows.x, rows.y / 100, strict=True))


def kfoury_rivals(*, share):
    """Fig. 11(a): CUBIC's share of both rates, or the index as drawn, by rival."""
    rows = references.load("kfoury2020_figures").query("figure == 11 and panel == 'a'")
    found = []
    for rival in ("bbr1", "bbr2"):
        at = {name: rows[rows.series == name].set_index("x").y for name in rows.series.unique()}
        cubic, bbr = at[f"cubic (vs {rival} panel)"], at[f"{rival} (vs {rival} panel)"]
        values = cubic / (cubic + bbr) if share else at[f"fairness cubic-{rival}"] / 100
        found += [(f"{rival}+cubic", buffer, value) for buffer, value in values.items()]
    return sample(("cca", "buffer_bdp"), found)


def kfoury_rtts(*, share):
    """Fig. 14: the share of the 50 ms flow where both are drawn, or the index as drawn."""
    rows = references.load("kfoury2020_figures").query("figure == 14")
    wide = rows.pivot_table(index=["condition", "x"], columns="series", values="y").reset_index()
    values = wide["50ms"] / (wide["50ms"] + wide["10ms"]) if share else wide.fairness / 100
    names = wide.condition.str.removeprefix("1Gbps;").str.split(" ")
    found = zip(names.str[0], names.str[1], wide.x, values, strict=True)
    return sample(("cca", "aqm", "buffer_bdp"), [row for row in found if not np.isnan(row[-1])])


def kfoury_rtts_retransmissions():
    rows = references.load("kfoury2020_figures").query("figure == 15")
    aqm = rows.condition.str.rsplit(";", n=1).str[-1]
    return sample(("cca", "aqm", "buffer_bdp"), zip(rows.series, aqm, rows.x, rows.y / 100, strict=True))


def kfoury_legends(*figures, scale=0.01, column="mean"):
    """Figs. 4 to 7: the index of the pooled flows, or the mean utilisation."""
    rows = references.load("kfoury2020_fig4-7_legends").query("figure in @figures")
    found = zip(rows.cca, rows.buffer_bdp, rows.loss_pct / 100, rows[column] * scale, strict=True)
    return sample(("cca", "buffer_bdp", "loss_ratio"), found)


def kfoury_index():
    return kfoury_legends(4, 6, column="jain_pct_published")


def kfoury_srtt():
    rows = references.load("kfoury2020_figures").query("figure == 9")
    flows = rows.condition.str.extract(r";(\d+) same-CCA", expand=False).astype(float)
    return sample(("cca", "n_flows", "buffer_bdp"), zip(rows.series, flows, rows.x, rows.y, strict=True))


def kfoury_hundred(*, share):
    """Fig. 11(c) and (d): CUBIC's share of both rates, or the index as drawn, by rival."""
    found = []
    for panel, loss in (("c", 0.0), ("d", 0.01)):
        rows = references.load("kfoury2020_figures").query("figure == 11")
        rows = rows[rows.panel == panel]
        at = {name: rows[rows.series == name].set_index("x").y for name in rows.series.unique()}
        for rival in ("bbr1", "bbr2"):
            cubic, bbr = at[f"cubic (vs {rival} panel)"], at[f"{rival} (vs {rival} panel)"]
            values = cubic / (cubic + bbr) if share else at[f"fairness cubic-{rival}"] / 100
            found += [(f"{rival}+cubic", buffer, loss, value) for buffer, value in values.dropna().items()]
    return sample(("cca", "buffer_bdp", "loss_ratio"), found)


def kfoury_numbers():
    rows = references.load("kfoury2020_fig12_share")
    return sample(
        ("n_cubic", "n_bbr2"), zip(rows.n_cubic, rows.n_bbr2, rows.cubic_share_pct / 100, strict=True)
    )


def kfoury_grid():
    rows = references.load("kfoury2020_fig13_heatmap")
    axes = (rows.buffer_bdp, rows.bw_mbps * 1e6, rows.delay_ms / 1000, rows.loss_pct / 100)
    return sample(
        ("buffer_bdp", "rate_bps", "rtt_s", "loss_ratio"),
        zip(*axes, rows.jain_from_shares_pct / 100, strict=True),
    )


def kfoury_alone():
    """Fig. 16(a), at the buffers that are drawn for all three."""
    rows = references.load("kfoury2020_figures").query("figure == 16 and panel == 'a'")
    rows = rows[rows.groupby("x").series.transform("nunique") == 3]
    return sample(
        ("cca", "buffer_bdp", "loss_ratio"),
        [(cca, buffer, 0.0, value) for cca, buffer, value in zip(rows.series, rows.x, rows.y, strict=True)],
    )


def kfoury_beside(*, cubic):
    """Figs. 17 to 20: the mean times of either half."""
    rows = references.load("kfoury2020_fct_legends")
    rows = rows[(rows.cca == "cubic") == cubic]
    mixed = rows[["cca", "competitor"]].apply(lambda both: "+".join(sorted(both)), axis=1)
    found = zip(mixed, rows.buffer_bdp, rows.loss_pct / 100, rows.mean_fct_s, strict=True)
    return sample(("cca", "buffer_bdp", "loss_ratio"), found)


def kfoury_disciplines():
    """Fig. 21; a mix has its CUBIC flows first."""
    rows = references.load("kfoury2020_figures").query("figure == 21")
    mix = rows.panel.map({"a": "1+1", "b": "10+1", "c": "10+10", "d": "50+50"})
    names = rows.series.replace("fq_codel_ecn", "fq_codel+ecn")
    return sample(("discipline", "mix", "buffer_bdp"), zip(names, mix, rows.x, rows.y / 100, strict=True))


def kfoury_paced(y_name, *, scale, shift=0.0):
    rows = references.load("kfoury2020_figures").query("figure == 22 and y_name == @y_name")
    pacing = rows.series.str.split("_").str[0].map({"nopacing": "unpaced", "pacing8.5Mbps": "paced"})
    loss = rows.series.str.split("_").str[1].map({"noloss": 0.0, "loss1%": 0.01})
    return sample(
        ("pacing", "buffer_bdp", "loss_ratio"), zip(pacing, rows.x, loss, rows.y * scale - shift, strict=True)
    )


def streams():
    rows = references.load("knit6_streams_mtu")
    return sample(
        ("cca", "streams", "mtu_bytes"),
        zip(rows.cca, rows.streams, rows.mtu_bytes, rows.throughput_gbps, strict=True),
    )


def estimates(statistic, scale=1.0):
    rows = references.load("fabric2023_fig1_bwest_cdf").query("statistic == @statistic")
    delay = rows.environment.str.startswith("netem").map({True: "emulated", False: "of the path"})
    return sample(("cca", "delay"), zip(rows.series, delay, rows.value * scale, strict=True))


def fund(kernel):
    """The goodput on FABRIC of the flows of one campaign; a kernel has one BBR, and a CUBIC of its own."""
    rows = references.load("fund2023_when_to_use_bbr")
    rows = rows[rows.dataset.str.startswith(f"Fund2023 FABRIC kernel {kernel}")]
    bbr = rows.comparison.str.split(" ").str[0].replace("bbr", "bbr1")
    condition = (rows.buffer_kB * 1024, rows.bw_mbps * 1e6, rows.rtt_ms / 1000)
    flows = [*zip(bbr, *condition, rows.bbr_mean_mbps * 1e6, strict=True)]
    flows += [("cubic", *row) for row in zip(*condition, rows.cubic_mean_mbps * 1e6, strict=True)]
    return sample(("cca", "buffer_bytes", "rate_bps", "rtt_s"), flows)


def drawn(cca, value):
    """A number that the register quotes from a figure."""
    return sample(("cca",), [(cca, value)])


IMPLIED = "implied_post_loss_mbps"
RETRANSMISSIONS = "retransmissions_pkts"

# One sample for each part of the claim, in its order.
PUBLISHED = {
    **{name: [f10()] for name in ("C10.1", "C10.2", "C10.3", "C10.4", "C10.5", "C10.6")},
    "C10.7": [f10(), f10(over_model=True), f10(over_model=True)],
    "C4.1": [drawn("bbr1", 8)],
    "C5.1": [drawn("bbr1", 1.4)],
    "C5.2": [drawn("bbr1", 168), drawn("bbr1", 4)],
    "C6.1": [drawn("bbr1", 125 / 40)],
    "C6.2": [drawn("bbr1", 1.0), drawn("cubic", 150 / 130)],
    "C7.1": [drawn("bbr1", 1.0)],
    "C7.2": [drawn("cubic", 0.695), drawn("cubic", 1.0)],
    "H1.1": [hsiao_by_rate()],
    "H1.2": [hsiao_by_rate()],
    "H2.1": [hsiao_by_cca()] * 4,
    "H2.2": [hsiao_by_cca()],
    "H3.1": [hsiao_by_rtt()],
    "H3.2": [hsiao_by_rtt()],
    "H4.1": [hsiao("experiment4", [])] * 2,
    "H8.1": [figure8()],
    "H8.2": [figure8()],
    "H8.3": [every_hsiao_row()],
    "H8.4": [figure8(IMPLIED), figure8(IMPLIED)],
    "K1.1": [e1()],
    "K1.2": [e1()],
    "K1.3": [e1(), e1()],
    "K1.4": [e1(RETRANSMISSIONS, 1.0)],
    "K1.5": [e1(RETRANSMISSIONS, 1e-6), e1(RETRANSMISSIONS, 1e-6)],
    "K2.1": [e2(RETRANSMISSIONS), e2(RETRANSMISSIONS)],
    "K2.2": [e2(RETRANSMISSIONS)],
    "K2.3": [e2()],
    "K2.4": [e2()],
    "K3.1": [e3(share=True), e3(share=False)],
    "K3.2": [e3(share=False)],
    "K3.3": [e3(share=False)],
    "K3.4": [e3(share=False)],
    "K5.1": [e5()],
    "K5.2": [e5(), e5(), e5()],
    "K5.3": [e5(), e5()],
    "K6.1": [e6("bdp"), e6("bdp")],
    "K6.2": [e6("bdp")],
    "K6.3": [e6("buffer")],
    "K6.4": [e6("bdp"), e6("bdp"), e6("bdp")],
    "K4.1": [streams()],
    "K4.2": [streams()],
    "K4.3": [streams()],
    "K4.4": [streams()],
    "K4.5": [streams()],
    "K4.6": [streams()],
    "KM.1": [estimates("cdf_at_9.5")] * 2,
    "KM.2": [estimates("p50", 0.1)] * 2,
    "F1.1": [kfoury_index(), kfoury_legends(5, 7)],
    "F1.2": [kfoury_index(), kfoury_index(), kfoury_legends(5, 7)],
    "F1.3": [kfoury_legends(5, 7)],
    "F1.4": [kfoury_legends(5, 7)] * 2,
    "F3.1": [kfoury_srtt()] * 8,
    "F3.2": [kfoury_srtt()] * 2,
    "F3.3": [kfoury_srtt()] * 3,
    "F3.4": [kfoury_srtt()],
    "F4.1": [kfoury()],
    "F4.2": [kfoury(), kfoury(), kfoury()],
    "F4.3": [kfoury(), kfoury(), kfoury()],
    "F4.4": [kfoury()],
    "F4.5": [kfoury("retransmission_rate_pct")] * 3,
    "F4.6": [kfoury_over_model()] * 2,
    "F2.1": [kfoury_retransmissions()] * 2,
    "F2.2": [kfoury_retransmissions()] * 3,
    "F5.1": [kfoury_rivals(share=True)],
    "F5.2": [kfoury_rivals(share=False)],
    "F5.3": [kfoury_rivals(share=True)],
    "F5.4": [kfoury_hundred(share=True)],
    "F5.5": [kfoury_hundred(share=False)] * 2,
    "F6.1": [kfoury_rtts(share=False), kfoury_rtts(share=True)],
    "F6.2": [kfoury_rtts(share=False)],
    "F6.3": [kfoury_rtts(share=False)],
    "F6.4": [kfoury_rtts_retransmissions()],
    "F7.1": [kfoury_alone()],
    "F7.2": [
        {
            "CUBIC's completion time": kfoury_beside(cubic=True),
            "BBR's completion time": kfoury_beside(cubic=False),
        }
    ],
    "F8.1": [kfoury_disciplines()],
    "F8.2": [kfoury_disciplines()],
    "F9.1": [
        kfoury_paced("agg_throughput_mbps", scale=1e-3),
        kfoury_paced("agg_throughput_mbps", scale=1e-3),
        kfoury_paced("jain_pct", scale=0.01),
        kfoury_paced("rtt_ms", scale=1.0, shift=20.0),
    ],
    "F9.2": [kfoury_paced("agg_throughput_mbps", scale=1e-3)],
    "F9.3": [kfoury_paced("jain_pct", scale=0.01)] * 2,
    "F12.1": [kfoury_numbers()],
    "F13.1": [kfoury_grid()] * 2,
    "D1": [fund("5.15")] * 2,
    "D2": [fund("5.13")] * 2,
    "D3": [fund("5.15"), fund("5.15"), fund("5.13")] * 2,
    "D4": [fund("5.15")],
}


def by_quantity(part, published):
    """Quantity → sample: one for all, or each of its own by its words."""
    each = quantities_in(part.formula)
    return {one: published[one.words] if isinstance(published, dict) else published for one in each}


def value_of(part, published):
    return float(part.formula.of(Means(samples=by_quantity(part, published))))


def values(name):
    claim = CLAIMS[name]
    if isinstance(claim.parts[0], Arithmetic):
        return [part.value for part in claim.parts]
    return [value_of(part, sample) for part, sample in zip(claim.parts, PUBLISHED[name], strict=True)]


@pytest.mark.parametrize("name", [name for name in CLAIMS if REGISTER.published_passes[name] != "na"])
def test_a_claim_passes_on_the_published_numbers_when_the_register_says_so(name):
    passes = all(part.band.holds(value) for part, value in zip(CLAIMS[name].parts, values(name), strict=True))
    assert ("yes" if passes else "no") == REGISTER.published_passes[name], values(name)


# The third column is the register's own ``published_value``, written down when the figure was read.
@pytest.mark.parametrize(
    ("name", "part", "printed", "within"),
    [
        ("C10.1", 0, 0.99, 0.005),
        ("C10.2", 0, 0.94, 0.005),
        ("C10.4", 0, 14.3, 0.05),
        ("C10.5", 0, 0.007, 0.0005),
        ("C10.6", 0, 1.037, 0.0005),
        ("C10.7", 0, -0.68, 0.025),  # the register took the slope from end to end, not by least squares
        ("C10.7", 1, 1.47, 0.005),
        ("C10.7", 2, 0.80, 0.005),
        ("CA.1", 0, 335.5, 0.05),
        ("CA.2", 0, 33.9, 0.05),
        ("H1.1", 0, 1.03, 0.005),
        ("H1.2", 0, 7.8 - 1.03, 0.05),
        ("H2.1", 0, 6.7, 0.05),
        ("H2.1", 1, 34, 0.5),
        ("H2.1", 2, 45, 0.5),
        ("H2.1", 3, 82, 0.5),
        ("H2.2", 0, 14.11 / 10.69, 0.0005),
        ("H3.1", 0, 1.2, 0.05),
        ("H3.2", 0, 0.30, 0.005),
        ("H4.1", 0, 0.974, 0.0005),
        ("H4.1", 1, 0.216, 0.0005),
        ("H8.1", 0, 1.036, 0.0005),
        ("H8.2", 0, 0.40, 0),
        ("H8.4", 0, 73.0 / 0.95 / 95.36, 0.001),
        ("K1.1", 0, 0.769, 0.0005),
        ("K1.2", 0, 0.074, 0.0005),
        ("K1.3", 0, 0.945, 0.0005),
        ("K1.4", 0, 0.153, 0.0005),
        ("K1.5", 0, 1.1, 0.05),
        ("K1.5", 1, 4.4, 0.05),
        ("K2.1", 0, 1.48, 0.005),
        ("K2.1", 1, 14.2, 0.05),
        ("K2.2", 0, -1.0, 1e-12),
        ("K2.3", 0, 0.003, 0.0005),
        ("K2.4", 0, 0.907, 0.0005),
        ("K3.1", 0, 0.753, 0.0005),
        ("K3.1", 1, 0.797, 0.0005),
        ("K3.2", 0, 0.955, 0.0006),
        ("K3.3", 0, 0.176, 0.0005),
        ("K3.4", 0, 0.984, 0.0005),
        ("K5.1", 0, 0.077, 0.0005),
        ("K5.2", 0, 1.76, 0.005),
        ("K5.2", 1, 13.2, 0.05),
        ("K5.2", 2, 53, 0.5),
        ("K5.3", 0, 0.25, 0.005),
        ("K5.3", 1, 0.0004, 0.00005),
        ("K6.1", 0, 1.01, 0.005),
        ("K6.1", 1, 1.03, 0.005),
        ("K6.2", 0, 0.003, 0.0005),
        ("K6.3", 0, 0.89, 0.005),
        ("K6.4", 0, 1.36, 0.005),
        ("K6.4", 1, 1.39, 0.005),
        ("F4.1", 0, 0.91, 0.005),
        ("F4.2", 0, 0.89, 0.005),
        ("F4.2", 1, 0.64, 0.005),
        ("F4.2", 2, 0.84, 0.005),
        ("F4.3", 0, 0.001, 0.0005),
        ("F4.3", 1, 0.63, 0.005),
        ("F4.3", 2, 0.12, 0.005),
        ("F4.4", 0, 0.017, 0.0005),
        ("F4.5", 0, 5.2, 0.05),
        ("F4.5", 1, 0.96, 0.005),
        ("F4.5", 2, 1.67, 0.005),
        ("F4.6", 0, 5.6, 0.05),
        ("F4.6", 1, 11.3, 0.05),
        ("F2.1", 0, 5.8, 0.05),
        ("F2.2", 0, 0.033, 0.0005),
        ("F2.2", 1, 0.178, 0.0005),
        ("F2.2", 2, 0.260, 0.0005),
        ("F5.1", 0, 0.90, 0.005),
        ("F5.2", 0, 0.36, 0.005),
        ("F5.3", 0, 0.842, 0.0005),
        ("F6.1", 0, 0.995, 0.0005),
        ("F6.1", 1, 0.87, 0.005),
        ("F6.2", 0, 0.8546, 0.00005),
        ("F6.3", 0, 0.9998, 0.00005),
        ("F6.4", 0, 6, 0.05),
        ("K4.1", 0, 1.0, 0),
        ("K4.2", 0, 70.1, 0),
        ("K4.4", 0, 1.0, 0),
        ("K4.5", 0, 1.0, 1e-12),
        ("K4.6", 0, 16.1, 0.05),
        ("KM.1", 0, 0.70 - 0.17, 0.005),
        ("KM.1", 1, 0.99 - 0.27, 0.005),
        ("KM.2", 0, 0.992, 0.0005),
        ("KM.2", 1, 0.993, 0.0005),
        ("F1.1", 0, 0.969, 0.00005),
        ("F1.1", 1, 0.937, 0.00005),
        ("F1.2", 0, 0.243, 0.00005),
        ("F1.2", 1, 0.657, 0.00005),
        ("F1.2", 2, 0.937, 0.00005),
        ("F1.3", 0, 0.619, 0.00005),
        ("F1.4", 0, 0.620, 0.00005),
        ("F1.4", 1, 0.927, 0.00005),
        ("F1.5", 0, 0.4, 0.05),
        ("F3.1", 0, 1.00, 0.005),
        ("F3.1", 7, 1.10, 0.006),
        ("F3.2", 0, 55, 0.5),
        ("F3.2", 1, 68, 0.5),
        ("F3.3", 0, 288, 0.5),
        ("F3.3", 1, 929, 0.5),
        ("F3.3", 2, 1709, 0.5),
        ("F3.4", 0, 517 - 73, 0.5),
        ("F5.4", 0, 28 / 28, 0),
        ("F5.5", 0, 0.728, 0.0005),
        ("F5.5", 1, 0.552, 0.0005),
        ("F7.1", 0, 1.03, 0.005),
        ("F8.1", 0, 0.9998, 0.0001),
        ("F8.2", 0, 0.686, 0.0005),
        ("F9.1", 1, 0.857, 0.0005),
        ("F9.1", 2, 0.985, 0.0005),
        ("F9.1", 3, 5, 0.5),
        ("F9.2", 0, 1.15, 0.02),  # the register divides two rounded numbers
        ("F9.3", 0, 0.60, 0.005),
        ("F9.3", 1, 0.17, 0.005),
        ("F12.1", 0, 0.005, 0.001),  # drawn: 16.24 %, the register rounds its distance
        ("F13.1", 0, 0.939 - 0.863, 0.0006),
        ("F13.1", 1, 0.863 - 0.731, 0.0006),
        ("D1", 0, 1.0, 1e-9),
        ("D1", 1, 0.0, 1e-12),
        ("D2", 0, 1.0, 1e-9),
        ("D2", 1, 0.0, 1e-12),
        *(("D3", part, 1.0, 0) for part in range(6)),
        ("D4", 0, 0.03, 0.0005),
        ("W1", 0, 1.2195, 0.00005),
        ("W7", 0, 0.5, 0.00005),
        ("W7", 1, 0.440 - 0.491, 0.0005),  # the smallest of the falls
    ],
)
def test_a_formula_gives_the_number_that_the_register_quotes(name, part, printed, within):
    assert values(name)[part] == pytest.approx(printed, abs=within)


def test_fabric_under_an_older_kernel_is_told_from_fabric():
    """Same gains in order and size, BBR's goodput in nine conditions of ten; CUBIC's in fewer."""
    order, apart = (part.value(fund("4.15")) for part in CLAIMS["D1"].parts)
    cubic, bbr1 = (part.value(fund("4.15")) for part in CLAIMS["D3"].parts[:2])
    assert order >= 0.95
    assert apart <= 0.02
    assert bbr1 >= 0.90 > cubic


def test_28_of_the_published_rows_are_beyond_physics():
    """The replication's column is the rate of link departures, not goodput."""
    sample = every_hsiao_row()
    beyond = [key for key, value in sample.runs.items() if value[0] > 1.01]
    assert (len(beyond), len(sample.runs)) == (28, 312)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_formula_works_elementwise(name):
    """Means of two resamples at once give what each gives alone: what the bootstrap relies on."""
    for part, sample in zip(CLAIMS[name].parts, PUBLISHED[name], strict=True):
        samples = by_quantity(part, sample)
        alone = [
            float(part.formula.of(Means(samples=samples, reduce=lambda runs, f=f: f * runs.mean(axis=-1))))
            for f in (1.0, 1.3)
        ]
        together = part.formula.of(
            Means(samples=samples, reduce=lambda runs: np.array([1.0, 1.3]) * runs.mean(axis=-1))
        )
        np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_a_paper_is_found_by_its_module_and_stands_where_the_register_has_it(tmp_path, monkeypatch):
    (tmp_path / "made_up.py").write_text(
        "from fabbbr_analysis.claims.records import Arithmetic, Band, claims\n"
        'CLAIMS = claims({"W7": Arithmetic("one", 1.0, Band(low=1))})\n'
    )
    before = [claim.id for claim in all_claims()]
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(tmp_path)])
    with_it = [claim.id for claim in all_claims()]
    place = len(with_it) - 1 - with_it[::-1].index("W7")
    assert [*with_it[:place], *with_it[place + 1 :]] == before
    assert with_it.index("W7") < place < with_it.index("GB.v2alpha")


def test_every_claim_is_in_the_register_and_none_twice():
    names = [claim.id for claim in all_claims()]
    assert len(set(names)) == len(names)
    gate = references.load("gate")
    assert set(names) - set(REGISTER.index) == set(gate.id)
    for claim in all_claims():
        assert claim.predicate
        assert claim.strength in ("core", "secondary", "arith")
        known = claim.experiment in {*references.load("experiments").id, *gate.experiment}
        assert known or isinstance(claim.parts[0], Arithmetic)
