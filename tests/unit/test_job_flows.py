"""Flows → commands: what iperf3 is asked for, by what its version needs."""

import pytest
from places import place

from fabbbr.job.build import prepare
from fabbbr.job.flows import block_bytes, has_threads
from fabbbr.plan.opening import open_plan

OLD, NEW = "iperf 3.12 (cJSON 1.7.15)", "iperf 3.16 (cJSON 1.7.15)"
TEXT = """id: made
title: made for a test
slice: two_site
path: {{rate: {rate}, rtt: 20 ms, mtu: {mtu}}}
flows: [{{cca: cubic, duration: 10 s}}, {{cca: cubic, size: 1 MB}}]
repeat: 1
"""


@pytest.fixture
def cell(tmp_path):
    def plan(rate="10 Mbit/s", mtu=1500):
        file = tmp_path / "made.yaml"
        file.write_text(TEXT.format(rate=rate, mtu=mtu), encoding="utf-8")
        return open_plan(str(file), seed=1).cells[0]

    return plan


@pytest.mark.parametrize(
    ("version", "threads"),
    [("iperf 3.9 (cJSON 1.7.13)", False), (OLD, False), (NEW, True), ("iperf 3.22", True),
     ("iperf 4.0", True), ("?", True)],
)  # fmt: skip
def test_threads_came_with_3_16(version, threads):
    assert has_threads(version) is threads


@pytest.mark.parametrize(
    ("rate", "mtu", "segments"),
    [("1 Mbit/s", 1500, 1), ("10 Mbit/s", 1500, 1), ("100 Mbit/s", 1500, 8), ("1 Gbit/s", 1500, 86),
     ("100 Mbit/s", 9000, 1)],
)  # fmt: skip
def test_a_block_is_what_a_millisecond_carries_in_whole_segments(cell, rate, mtu, segments):
    asked = cell(rate, mtu)
    assert block_bytes(asked, asked.flows[0]) == segments * (mtu - 52)


def test_a_block_is_never_larger_than_iperf3s_own(cell):
    asked = cell("10 Gbit/s")
    assert block_bytes(asked, asked.flows[0]) == 128 << 10


@pytest.mark.parametrize(("version", "asked"), [(None, False), (OLD, False), (NEW, True)])
def test_only_an_iperf3_with_threads_gets_short_blocks(cell, version, asked):
    tools = {} if version is None else {"iperf3": version}
    timed, sized = prepare(cell(), place(tools=tools)).job.flows
    assert (timed.client_argv[-2:] == ("--length", "1448")) is asked
    assert "--length" not in sized.client_argv
