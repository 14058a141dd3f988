"""A guest has room for what stands in its sockets and for the reports that iperf3 holds until the end."""

import pytest
from places import GUEST

from fabbbr.backends.guest.size import memory_bytes
from fabbbr.job.build import prepare
from fabbbr.plan.opening import open_plan

GIB = 1 << 30


@pytest.fixture
def memory(tmp_path):
    def of(flow, path="rate: 10 Mbit/s, rtt: 20 ms"):
        file = tmp_path / "made.yaml"
        text = (
            f"id: made\ntitle: made\nslice: two_site\npath: {{{path}}}\nflows: "
            f"[{{cca: cubic, {flow}}}]\nrepeat: 1\n"
        )
        file.write_text(text, encoding="utf-8")
        return memory_bytes(prepare(open_plan(str(file), seed=1).cells[0], GUEST).job)

    return of


def test_ordinary_runs_all_get_the_same_for_the_kernel_sizes_its_limits_by_it(memory):
    assert memory("duration: 10 s") == memory("duration: 300 s, count: 4") == 2 * GIB


def test_long_windows_get_more(memory):
    assert memory("duration: 10 s", "rate: 100 Gbit/s, rtt: 300 ms") > 8 * GIB


def test_a_day_of_many_streams_gets_what_iperf3_was_seen_to_take(memory):
    # 1.95 GB at one end after 44 735 s of 32 streams, when it was killed for want of more.
    taken = 1.95e9 * 86_400 / 44_735
    assert memory("duration: 86400 s, streams: 32") > 2 * taken


def test_bytes_are_sent_by_our_own_program_which_keeps_no_reports(memory):
    assert memory("size: 1 GB, streams: 32") == 2 * GIB
