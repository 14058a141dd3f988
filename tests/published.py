"""The papers' own numbers as samples: one run per condition, and a sample for each part of each claim."""

import numpy as np

from fabbbr_analysis import models, references
from fabbbr_analysis.claims.sample import Sample, key_of


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
