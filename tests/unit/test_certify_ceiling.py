"""No receiver gets more than its bottleneck carries: on real raw files, and on ones that say otherwise."""

import json
import shutil
from pathlib import Path

import pytest
from golden_cell import CELL, RAW, WITH_OFFLOADS, WITH_OFFLOADS_RAW
from places import GUEST

from fabbbr.certify import ceiling
from fabbbr.certify.evidence import Evidence
from fabbbr.job.build import prepare


@pytest.fixture
def raw(tmp_path):
    return Path(shutil.copytree(RAW, tmp_path / "raw"))


def checked(raw, cell=CELL):
    return list(ceiling.checks(prepare(cell, GUEST), Evidence.read(raw)))


def change(raw, flow, **sums):
    """Let the receiver of an iperf3 flow say other sums."""
    path = raw / f"flow-{flow}.server.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["end"]["sum_received"] |= sums
    path.write_text(json.dumps(document), encoding="utf-8")


def received(raw, flow):
    return json.loads((raw / f"flow-{flow}.server.json").read_text(encoding="utf-8"))["end"]["sum_received"]


def test_real_cells_are_below_their_ceiling(raw):
    for found in (checked(raw), checked(WITH_OFFLOADS_RAW, WITH_OFFLOADS)):
        assert found
        assert all(check.passed for check in found)


def test_a_flow_that_got_more_than_its_link_carries_in_its_time_does_not_pass(raw):
    change(raw, 0, seconds=received(raw, 0)["seconds"] / 20)
    (check,) = checked(raw)
    assert not check.passed
    assert check.measured.startswith("flow 0: ")


def test_flows_that_together_got_more_than_the_link_carries_do_not_pass(raw):
    """Each of the two is believed to have run for longer than both together did."""
    rate_bps = CELL.bottleneck.rate.bps
    records = json.loads((raw / "flows.json").read_text(encoding="utf-8"))
    lasted_s = max(each["ended_s"] for each in records) - min(each["started_s"] for each in records)
    for flow in (0, 1):
        change(raw, flow, bytes=int(0.8 * rate_bps / 8 * lasted_s), seconds=lasted_s * 5)
    (check,) = checked(raw)
    assert not check.passed
    assert check.measured.startswith("all flows: ")


def test_flows_that_do_not_cross_a_bottleneck_are_not_counted_for_it(raw):
    elsewhere = tuple(
        flow.model_copy(update={"sender": flow.receiver, "receiver": flow.sender}) for flow in CELL.flows
    )
    assert checked(raw, CELL.model_copy(update={"flows": elsewhere, "links": CELL.links})) == []


def test_where_no_receiver_says_what_it_got_nothing_is_held_against_the_link(raw):
    for flow in CELL.flows:
        (raw / f"flow-{flow.index}.server.json").write_bytes(b"")
    (check,) = checked(raw)
    assert check.passed
    assert "no flow" in check.measured
