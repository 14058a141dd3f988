"""Raw files of one cell → rows, on a real capture: BBR and two streams of CUBIC at 20 Mbit/s (TBF)."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest
import recorded_run

from fabbbr.errors import ParseError
from fabbbr.model import LinkWay
from fabbbr.plan.link_traces import Trace
from fabbbr.ports import DATA_PORT, SERVER_PORT, ports_per_flow
from fabbbr.units import Rate
from fabbbr_analysis.tables.cell import _video_columns, as_frames, read_cell
from fabbbr_analysis.tables.columns import FLOWS, INTERVALS
from fabbbr_analysis.tables.sampled import sampled_tables


@pytest.fixture
def tables_of(tmp_path):
    def read(cell=None, **recording):
        cell = cell or recorded_run.cell()
        folder = recorded_run.create(tmp_path / "run", cell)
        return as_frames(read_cell(recorded_run.record(folder, cell, **recording)))

    return read


@pytest.fixture
def tables(tables_of):
    return tables_of()


def test_columns_are_those_of_the_documented_run_folder(tmp_path):
    cell = recorded_run.cell()
    tables = read_cell(recorded_run.record(recorded_run.create(tmp_path / "run", cell), cell))
    for name, schema in {
        "flows": FLOWS,
        "intervals": INTERVALS,
        **{name: table.schema for name, table in sampled_tables().items()},
    }.items():
        assert tables[name].schema.names == schema.names


def test_a_cell_row_says_what_was_asked(tables):
    (row,) = tables.cells.to_dict("records")
    asked = {
        "cell_id": "rivals-r1", "rate_bps": 20_000_000, "buffer_bytes": 30_000, "bdp_bytes": 2_500,
        "buffer_bdp": 12.0,
        "rtt_s": 0.001, "aqm": "taildrop", "ccas": "bbr1,cubic", "n_flows": 2, "duration_s": 4.0,
        "warm_up_s": 1.0,
        "axis_cca": "bbr1", "mtu_bytes": 1500, "status": "certified",
    }  # fmt: skip
    assert {key: row[key] for key in asked} == asked
    assert pd.isna(row["loss_ratio"])
    assert pd.isna(row["reason"])


def test_a_lossy_link_is_told_apart_from_the_bottleneck(tables_of):
    cell = recorded_run.cell()
    loss = {"rate": "0.1 %", "position": "before_bottleneck"}
    links = [cell.links[0].model_dump() | {"loss": loss}, cell.links[1].model_dump()]
    (row,) = tables_of(recorded_run.cell(links=links)).cells.to_dict("records")
    assert (row["loss_ratio"], row["loss_position"]) == (0.001, "before_bottleneck")
    assert row["ack_aggregation_s"] == 0


def test_a_way_back_of_its_own_has_columns_and_one_without_has_none(tables_of, tables):
    queue = recorded_run.cell().links[1].model_dump()["bottleneck"]
    back = {"rate": "2 Mbit/s", "buffer_bytes": 9000, "buffer_asked": "9 kB", "bdp_bytes": 250}
    links = [
        link.model_dump() | ({"bottleneck": queue | {"reverse": back}} if link.bottleneck else {})
        for link in recorded_run.cell().links
    ]
    (row,) = tables_of(recorded_run.cell(links=links)).cells.to_dict("records")
    assert (row["rate_reverse_bps"], row["buffer_reverse_bytes"]) == (2_000_000, 9000)
    (row,) = tables.cells.to_dict("records")
    assert pd.isna(row["rate_reverse_bps"])


def test_the_longest_wait_for_an_aggregate_is_a_column(tables_of):
    cell = recorded_run.cell()
    held = {"ack_aggregation": {"least": "0.2 ms", "most": "3 ms"}}
    links = [cell.links[0].model_dump(), cell.links[1].model_dump() | held]
    (row,) = tables_of(recorded_run.cell(links=links)).cells.to_dict("records")
    assert row["ack_aggregation_s"] == 0.003


def test_how_much_of_the_data_comes_late_and_how_late_are_columns(tables_of, tables):
    cell = recorded_run.cell()
    late = {"reordering": {"rate": "1 %", "late": "5 ms"}}
    links = [cell.links[0].model_dump(), cell.links[1].model_dump() | late]
    (row,) = tables_of(recorded_run.cell(links=links)).cells.to_dict("records")
    assert (row["reordered_ratio"], row["late_s"]) == (0.01, 0.005)
    (row,) = tables.cells.to_dict("records")
    assert (row["reordered_ratio"], row["late_s"]) == (0, 0)


@pytest.mark.parametrize(
    ("kinds", "variant"),
    [
        ([("bbr2", "fabbbr", "draft01"), ("cubic", None, None)], "draft01"),
        ([("bbr2", "google", None), ("bbr2", "fabbbr", "v2alpha")], "google,v2alpha"),
        ([("bbr3", "fabbbr", "v3"), ("cubic", None, None)], None),
        ([("bbr1", None, None), ("cubic", None, None)], None),
    ],
)
def test_a_cell_row_says_which_bbr2_it_has_and_a_flow_row_whose_it_is(tables_of, kinds, variant):
    flows = [
        flow.model_dump() | dict(zip(("cca", "implementation", "profile"), kind, strict=True))
        for flow, kind in zip(recorded_run.cell().flows, kinds, strict=True)
    ]
    tables = tables_of(recorded_run.cell(flows=flows))
    (found,) = tables.cells["bbr2_variant"]
    assert (None if pd.isna(found) else found) == variant
    told = tables.flows[["cca", "implementation", "profile"]].astype(object)
    assert list(told.where(told.notna(), None).itertuples(index=False, name=None)) == kinds


def test_a_cell_without_any_rate_has_no_bottleneck(tables_of):
    links = [link.model_dump() | {"bottleneck": None} for link in recorded_run.cell().links]
    (row,) = tables_of(recorded_run.cell(links=links)).cells.to_dict("records")
    assert all(pd.isna(row[key]) for key in ("rate_bps", "buffer_bytes", "bdp_bytes", "buffer_bdp", "aqm"))


def test_goodput_is_what_the_receiver_got_over_its_own_seconds(tables):
    flows = tables.flows
    received = tables.intervals[tables.intervals["side"] == "receiver"].groupby("flow")["bytes"].sum()
    assert flows["received_bytes"].tolist() == received.tolist()
    assert (8 * flows["received_bytes"] / flows["receiver_s"]).tolist() == flows["goodput_bps"].tolist()
    assert (flows["goodput_bps"] < flows["throughput_bps"]).all()
    assert 0.9 * 20e6 < flows["goodput_bps"].sum() < 20e6


def test_steady_goodput_leaves_out_the_warm_up(tables, tables_of):
    whole = tables_of(recorded_run.cell(warm_up="0 s")).flows
    assert (whole["goodput_steady_bps"] - whole["goodput_bps"]).abs().max() < 0.03 * 20e6
    assert (tables.flows["goodput_steady_bps"] != whole["goodput_steady_bps"]).all()


def test_a_flow_starts_when_it_was_started_and_not_when_it_was_asked_to(tables, tables_of):
    assert tables.flows["start_s"].tolist() == [0.0, 0.125]
    assert tables_of(files={"flows.json": None}).flows["start_s"].tolist() == [0.0, 0.0]


def sized(side, **changes):
    """What one end of a flow of 1 MB prints, begun at 100 s of its own clock and arrived at 102 s."""
    stream = {
        "port": 32768,
        "bytes": 1_000_000,
        "ended_s": 102.0,
        "samples": [{"at_s": 102.5, "bytes": 1_000_000}],
    }
    document = {"transfer": 1, "side": side, "streams": [stream | changes]}
    return json.dumps(document | ({"started_s": 100.0} if side == "send" else {})).encode()


def sized_flow(tables_of, **received):
    flow = recorded_run.cell().flows[0].model_dump() | {"duration": None, "size": "1 MB"}
    files = {
        "flow-0.client.json": sized("send"),
        "flow-0.server.json": sized("receive", **received),
        "flows.json": b'[{"flow": 0, "started_s": 0.0, "epoch_s": 99.75}]',
    }
    (row,) = tables_of(recorded_run.cell(flows=[flow]), files=files).flows.to_dict("records")
    return row


def test_only_a_flow_of_given_size_has_a_completion_time(tables, tables_of):
    assert tables.flows["completion_s"].isna().all()
    row = sized_flow(tables_of)
    assert (row["received_bytes"], row["completion_s"], row["receiver_s"]) == (1_000_000, 2.0, 2.0)


def test_a_flow_of_given_size_between_two_machines_is_timed_by_what_their_clocks_show_at_one_instant(
    tables_of,
):
    flow = recorded_run.cell().flows[0].model_dump() | {"duration": None, "size": "1 MB"}
    ahead_s = 7000.0
    samples = [{"at_s": 102.5 + ahead_s, "bytes": 1_000_000}]
    files = {
        "flow-0.client.json": sized("send"),
        "flow-0.server.json": sized("receive", ended_s=102.0 + ahead_s, samples=samples),
        "flows.json": json.dumps(
            [{"flow": 0, "started_s": 0.0, "epoch_s": 99.75, "server_epoch_s": 99.75 + ahead_s}]
        ).encode(),
    }
    (row,) = tables_of(recorded_run.cell(flows=[flow]), files=files).flows.to_dict("records")
    assert (row["start_s"], row["completion_s"], row["receiver_s"]) == (0.25, 2.0, 2.0)


def test_a_flow_of_given_size_starts_with_its_first_syn(tables_of):
    assert sized_flow(tables_of)["start_s"] == 0.25


def test_a_flow_that_lacks_a_byte_is_not_complete(tables_of):
    row = sized_flow(tables_of, bytes=999_999)
    assert row["received_bytes"] == 999_999
    assert pd.isna(row["completion_s"])


@pytest.mark.parametrize(
    ("files", "outcome", "error"),
    [
        ({"flow-0.client.json": b"", "flow-0.client.err": b"Killed\n"}, "no_output", "Killed"),
        ({"flow-0.client.json": None, "flow-0.server.json": None}, "no_output", None),
        ({"flow-0.client.json": b'{"error": "unable to connect"}'}, "error", "unable to connect"),
        ({"flow-0.client.json": b'{"start": {}, "intervals": ['}, "interrupted", None),
    ],
)
def test_a_failed_flow_is_a_row(tables_of, files, outcome, error):
    failed, other = tables_of(files=files).flows.to_dict("records")
    assert (failed["outcome"], other["outcome"]) == (outcome, "completed")
    assert pd.isna(failed["error"]) if error is None else failed["error"] == error
    assert pd.isna(failed["throughput_bps"])


def test_sockets_of_a_flow_are_its_data_connections_at_both_ends(tables):
    seen = tables.sockets.groupby(["flow", "side"])[["host", "local_port", "peer_port"]].agg(
        lambda x: sorted(set(x))
    )
    second = DATA_PORT + ports_per_flow(2)
    assert seen.loc[(0, "sender")].tolist() == [["a"], [DATA_PORT], [SERVER_PORT]]
    assert seen.loc[(0, "receiver")].tolist() == [["b"], [SERVER_PORT], [DATA_PORT]]
    assert seen.loc[(1, "sender")].tolist() == [["a"], [second, second + 1], [SERVER_PORT + 1]]
    assert len(seen) == 4


def test_every_sample_has_at_most_one_row_a_connection(tables):
    assert not tables.sockets.duplicated(["host", "t_s", "local_port", "peer_port"]).any()
    assert tables.sockets["t_s"].nunique() > 10


def test_the_congestion_control_of_a_socket_is_that_of_its_flow(tables):
    sender = tables.sockets[tables.sockets["side"] == "sender"]
    assert sender.groupby("flow")["cca"].unique().map(list).to_dict() == {0: ["bbr"], 1: ["cubic"]}
    assert sender[sender["flow"] == 0]["bbr_bw_bps"].notna().any()
    assert sender[sender["flow"] == 1]["bbr_bw_bps"].isna().all()


def test_where_no_socket_is_on_a_data_port_the_fullest_connections_count(tables_of, tables):
    moved = {}
    for host in "ab":
        text = (recorded_run.GOLDEN / f"sockets.rivals.{host}.txt").read_bytes()
        for stream in range(2):
            port = DATA_PORT + ports_per_flow(2) + stream
            text = text.replace(b":%d " % port, b":%d " % (50_001 + stream))
        moved[f"sockets.{host}.txt"] = text
    sockets = tables_of(files=moved).sockets
    assert set(sockets[sockets["flow"] == 1]["peer_port"]) == {SERVER_PORT + 1, 50_001, 50_002}
    assert len(sockets) == len(tables.sockets)


def test_only_the_qdisc_that_holds_the_packets_has_the_role(tables):
    told = tables.queues.dropna(subset=["role"])
    assert set(zip(told["interface"], told["kind"], told["role"], told["link"], strict=True)) == {
        ("s1-eth2", "tbf", "bottleneck", "trunk")
    }
    assert told["t_s"].is_unique


TRACE = Trace(opportunities_ms=(1, 2)).link("made.up")


def queue(kind: str, interface: str) -> dict:
    return {"kind": kind, "dev": interface, "handle": f"{kind}:", "backlog": 1}


@pytest.mark.parametrize(
    ("aqm", "kinds", "role", "chosen"),
    [
        ("fq_codel", ["tbf", "fq_codel"], "bottleneck", "fq_codel"),
        ("cake", ["cake"], "bottleneck", "cake"),
        ("taildrop", ["tbf", "bfifo"], "bottleneck", "tbf"),
        ("fq_codel", ["tbf"], "bottleneck", "tbf"),
        ("red", ["tbf", "red"], "bottleneck_reverse", "red"),
        ("taildrop", ["netem", "fq_codel"], "loss", "netem"),
        ("taildrop", ["netem"], "delay", "netem"),
        ("taildrop", ["noqueue"], "delay", None),
    ],
)
def test_the_role_goes_to_one_qdisc_of_the_interface(tables_of, aqm, kinds, role, chosen):
    trunk = recorded_run.cell().trunk
    queue_there = trunk.bottleneck.model_copy(update={"aqm": aqm})
    links = [trunk.model_copy(update={"bottleneck": queue_there})]
    files = {
        "queues.s1.json": json.dumps([queue(kind, "s1-eth1") for kind in kinds]).encode(),
        "queues.s1.times": b"0.5\n",
    }
    interfaces = {"s1-eth1": {"link": "trunk", "role": role, "handle": "1:"}}
    queues = tables_of(recorded_run.cell(links=links), files=files, interfaces=interfaces).queues
    assert queues.dropna(subset=["role"])[["kind", "role"]].values.tolist() == (
        [[chosen, role]] if chosen else []
    )


@pytest.mark.parametrize(
    ("there", "back", "chosen"),
    [
        ({}, {"aqm": "codel"}, "codel"),
        ({"aqm": "codel"}, {"aqm": "taildrop"}, "tbf"),
        ({"trace": TRACE}, {}, "tbf"),
        ({}, {"trace": TRACE}, "opportunities"),
    ],
)
def test_the_role_of_a_way_back_goes_to_its_own_qdisc(tables_of, there, back, chosen):
    trunk = recorded_run.cell().trunk
    ways = LinkWay(rate=Rate(10**6), buffer_bytes=9000, buffer_asked="9 kB", bdp_bytes=9000)
    queue_there = trunk.bottleneck.model_copy(update={**there, "reverse": ways.model_copy(update=back)})
    kinds = ("tbf", "codel") if back.get("aqm") == "codel" else ("opportunities", "tbf")
    files = {
        "queues.s1.json": json.dumps([queue(kind, "s1-eth0") for kind in kinds]).encode(),
        "queues.s1.times": b"0.5\n",
    }
    interfaces = {"s1-eth0": {"link": "trunk", "role": "bottleneck_reverse"}}
    of_cell = recorded_run.cell(links=[trunk.model_copy(update={"bottleneck": queue_there})])
    queues = tables_of(of_cell, files=files, interfaces=interfaces).queues
    assert queues.dropna(subset=["role"])["kind"].tolist() == [chosen]


def test_without_told_interfaces_roles_are_absent(tables_of):
    queues = tables_of(interfaces=None).queues
    assert len(queues) > 0
    assert queues[["role", "link"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("files", "place"),
    [
        (
            {"sockets.a.times": b"0.0 1\n"},
            r"sockets\.a\.txt holds \d+ sockets, but sockets\.a\.times speaks of 1;",
        ),
        ({"sockets.a.txt": b"nothing\n"}, r"sockets\.a\.txt, line 1"),
        (
            {"queues.s1.times": b"0.0\n"},
            r"queues\.s1\.json holds \d+ samples, but queues\.s1\.times speaks of 1;",
        ),
        ({"queues.s1.json": b"[{]\n"}, r"queues\.s1\.json, near line 1"),
        ({"flow-0.client.json": b"[]"}, r"flow-0\.client\.json"),
        ({"flows.json": b"{}"}, r"flows\.json"),
    ],
)
def test_a_raw_file_that_cannot_be_read_is_named_with_its_cell(tables_of, files, place):
    with pytest.raises(ParseError, match="cell rivals-r1, " + place):
        tables_of(files=files)


def test_interfaces_told_in_another_form_are_refused(tables_of):
    with pytest.raises(ParseError, match="interfaces"):
        tables_of(interfaces={"s1-eth2": "bottleneck"})


def test_a_cell_without_any_raw_file_has_rows_for_its_flows_alone(tables_of):
    tables = tables_of(files=dict.fromkeys([*recorded_run.RAW_FILES, "flows.json"]))
    assert tables.flows["outcome"].tolist() == ["no_output", "no_output"]
    assert (len(tables.intervals), len(tables.sockets), len(tables.queues)) == (0, 0, 0)


@pytest.mark.parametrize(("rates_bps", "mean_bps"), [([4e6, None, 2e6], 3e6), ([None], None), ([], None)])
def test_the_mean_rate_of_a_videos_chunks_is_of_those_that_took_time(rates_bps, mean_bps):
    chunks = [{"whole_s": 1.0, "stalled_s": 0.0, "download_bps": rate_bps} for rate_bps in rates_bps]
    ends = SimpleNamespace(flow=SimpleNamespace(video=object()), chunks=pa.Table.from_pylist(chunks))
    assert _video_columns(ends)["chunk_download_bps"] == mean_bps
