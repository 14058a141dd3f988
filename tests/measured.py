"""Small tables of one cell, and their metrics."""

import dataclasses

import numpy as np
import pandas as pd

from fabbbr import model
from fabbbr.plan.link_traces import Trace
from fabbbr.units import Duration, Rate, Size
from fabbbr_analysis import metrics
from fabbbr_analysis.tables.cell import CellTables

NAN = float("nan")


def carrying(*flows, steps=(), warm_up="2 s", rate="8 Mbit/s"):
    """A cell with these flows from h1 to h2, behind a bottleneck."""
    return model.Cell(
        id="c", experiment="e", condition="c", axes={}, repetition=1, seed=1,
        hosts=(model.Host(name="h1"), model.Host(name="h2")),
        switches=(model.Switch(name="s1"),),
        links=(
            model.CellLink(name="access", a="h1", b="s1"),
            model.CellLink(
                name="trunk", a="s1", b="h2", delay=Duration.parse("20 ms"),
                bottleneck=model.Bottleneck(
                    rate=Rate.parse(rate), buffer_bytes=80_000, buffer_asked="2 BDP", bdp_bytes=40_000
                ),
            ),
        ),
        flows=flows, steps=tuple(steps), sample_period=Duration.parse("100 ms"),
        warm_up=Duration.parse(warm_up),
    )  # fmt: skip


def cell(flows=1, sized=(), **more):
    """``sized``: numbers of the flows that have a size instead of a duration."""
    made = (
        model.Flow(
            index=i, group="g", cca="bbr1", sender="h1", receiver="h2",
            start=Duration.parse("0 s"), duration=None if i in sized else Duration.parse("10 s"),
            size=Size.parse("1 MB") if i in sized else None,
            rtt=Duration.parse(f"{40 + 10 * i} ms"),
        )
        for i in range(flows)
    )  # fmt: skip
    return carrying(*made, **more)


def behind_a_trace(of_cell, times_ms):
    """The same cell with a bottleneck that delivers by these opportunities, over and over."""
    trace = Trace(opportunities_ms=tuple(times_ms)).link("made.up")
    links = tuple(
        link.model_copy(update={"bottleneck": link.bottleneck.model_copy(update={"trace": trace})})
        if link.bottleneck is not None
        else link
        for link in of_cell.links
    )
    return of_cell.model_copy(update={"links": links})


OF_DATAGRAMS_AND_VIDEOS = (
    "datagrams_sent", "datagrams_lost", "datagrams_reordered", "jitter_s", "pdv_p95_s", "video_startup_s",
    "video_stalled_s",
)  # fmt: skip


def flow_rows(*goodputs, starts=None, groups=None, seconds=10.0, **columns):
    n = len(goodputs)
    received = np.array([NAN if g is None else g * seconds / 8 for g in goodputs])
    frame = pd.DataFrame(
        {
            "flow": range(n),
            "group": groups or ["g"] * n,
            "cca": ["bbr1"] * n,
            "start_s": starts or [0.0] * n,
            "receiver_zero_s": [NAN] * n,
            "sent_bytes": received * 1.25,
            "received_bytes": received,
            "sender_s": seconds,
            "receiver_s": seconds,
            "goodput_bps": [NAN if g is None else g for g in goodputs],
            "retransmits": 0.0,
            "completion_s": NAN,
            **dict.fromkeys(OF_DATAGRAMS_AND_VIDEOS, NAN),
        }
    )
    return frame.assign(**columns)


def interval_rows(per_second):
    """Receiver intervals of 1 s: ``{flow: [bytes, …]}``."""
    rows = [
        {"flow": flow, "stream": 1, "side": "receiver", "start_s": float(i), "end_s": i + 1.0, "bytes": count}
        for flow, counts in per_second.items()
        for i, count in enumerate(counts)
    ]
    return pd.DataFrame(rows, columns=["flow", "stream", "side", "start_s", "end_s", "bytes"])


def socket_rows(rows=()):
    columns = ["flow", "side", "local_port", "t_s", "rtt_s", "mss_bytes", "bytes_sent", "bbr_bw_bps",
               "peer_port", "bytes_received", "bytes_acked", "sacked_segments",
               "sent_segments", "dsack_segments", "bytes_retrans"]  # fmt: skip
    rows = [(*row, *[NAN] * (len(columns) - len(row))) for row in rows]
    return pd.DataFrame(list(rows), columns=columns)


def queue_rows(rows=()):
    columns = ["node", "interface", "handle", "t_s", "backlog_bytes", "sent_bytes", "drops", "role", "link"]
    return pd.DataFrame(list(rows), columns=columns)


def bottleneck(samples):
    """``[(t_s, backlog, sent, drops), …]`` of the trunk's queue."""
    return queue_rows([("s1", "s1-eth2", "1:", *sample, "bottleneck", "trunk") for sample in samples])


def packet_rows(rows=()):
    """``[(role, link, flow, sojourn_s), …]``."""
    return pd.DataFrame(rows, columns=["role", "link", "flow", "sojourn_s"])


def chunk_rows(*samples):
    """(asked at, whole at) of each chunk, in seconds."""
    return pd.DataFrame(samples, columns=["asked_s", "whole_s"], dtype="float64")


def ping_rows(*samples):
    """(seconds, round trip in seconds) of each request."""
    return pd.DataFrame(samples, columns=["t_s", "rtt_s"], dtype="float64")


EMPTY = CellTables(
    cells=pd.DataFrame({"timer_hz": [1000]}),
    flows=flow_rows(),
    intervals=interval_rows({}),
    sockets=socket_rows(),
    queues=queue_rows(),
    packets=packet_rows(),
    pings=ping_rows(),
    chunks=chunk_rows(),
)


def of(flows=None, intervals=None, of_cell=None, **tables):
    """The metrics of a cell of which these tables are known; the others are empty."""
    known = {"flows": flows, "intervals": intervals, **tables}
    given = {name: table for name, table in known.items() if table is not None}
    count = 1 if flows is None else max(len(flows), 1)
    return metrics.of_cell(dataclasses.replace(EMPTY, **given), of_cell or cell(flows=count))
