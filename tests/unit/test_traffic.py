"""What goes beside plain flows of TCP: pings, and flows that come at random; from the file to the job."""

import signal
import subprocess
import sys
from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import GUEST
from scipy import stats

from fabbbr.errors import PlanError, SpecError
from fabbbr.job.build import prepare
from fabbbr.job.parts import split
from fabbbr.model import Datagrams
from fabbbr.plan import definitions, expand
from fabbbr.plan.arrivals import arrivals, parse_sizes
from fabbbr.plan.estimate import offered_loads
from fabbbr.plan.opening import open_plan
from fabbbr.spec import read
from fabbbr.spec.experiment import ArrivalProcess
from fabbbr.units import Duration, Rate
from fabbbr.ways import going_back

BASE = """\
id: small
title: A small experiment
slice: {slice}
path: {{rate: 10 Mbit/s, rtt: 20 ms}}
flows: [{flows}]
repeat: {repeat}
"""
LONG = "{cca: cubic, duration: 60 s}"


RANDOM = "{{arrivals: {{rate: 5 /s, size: {size}}}, cca: cubic, duration: 9 s}}"


def cells(flows, *, slice_="two_site", repeat=1, seed=1, **how):
    text = BASE.format(slice=slice_, flows=flows, repeat=repeat)
    return expand.cells(read.parse(text, source="f.yaml"), definitions.load, seed=seed, **how)


def refusals(flows):
    with pytest.raises(SpecError) as refused:
        cells(flows)
    return str(refused.value).splitlines()


@pytest.mark.parametrize(
    ("flows", "said"),
    [
        ("{duration: 1 s}", "flows[0].cca: is missing; add e.g. cca: cubic"),
        ("{ping: 1 s}", "flows: nothing but pings, which need flows to be beside"),
        (f"{LONG}, {{ping: 1 s, cca: cubic}}", "flows[1].cca: means nothing for a group of kind ping"),
        (f"{LONG}, {{ping: 1 s, count: 2}}", "flows[1].count: means nothing for a group of kind ping"),
        (f"{LONG}, {{ping: 10 us}}", "flows[1].ping: 10 us is out of range; give 1 ms to 60 s"),
        (f"{LONG}, {{ping: 1 s, start: 60 s}}", "flows[1].start: 60 s is not before the end of the flows"),
        (f"{LONG}, {{ping: 1 s, duration: 0 s}}", "flows[1].duration: 0 ns is out of range"),
        (f"{LONG}, {{ping: 1 s, from: h1, direction: reverse}}", "flows[1].direction: from and to already"),
        ("{udp: 5 Mbit/s, cca: cubic, duration: 9 s}", "flows[0].cca: means nothing for a group of kind udp"),
        ("{udp: 5 Mbit/s, size: 1 kB}", "flows[0].size: means nothing for a group of kind udp"),
        ("{udp: 5 Mbit/s}", "flows[0].duration: is missing: udp goes on and on"),
        ("{udp: 1 kbit/s, duration: 9 s}", "flows[0].udp: 1 kbit/s is out of range; give 8 kbit/s"),
        (
            "{udp: 1 Mbit/s, packet_size: 40 B, duration: 9 s}",
            "flows[0].packet_size: 40 B is out of range; give 44 B to 1.5 kB",
        ),
        ("{cca: cubic, packet_size: 1 kB, duration: 9 s}", "flows[0].packet_size: means nothing for a group"),
        ("{video: {chunk: 1 s}, cca: cubic, duration: 9 s}", "flows[0].video.bitrate: is missing"),
        ("{video: {bitrate: 4 Mbit/s}, cca: cubic}", "flows[0].duration: is missing: video goes on and on"),
        (
            "{video: {bitrate: 4 Mbit/s, chunk: 2 s, buffer: 1 s}, cca: cubic, duration: 9 s}",
            "flows[0].video.buffer: 1 s has no room for a chunk of 2 s",
        ),
        (
            "{video: {bitrate: 4 Mbit/s}, cca: cubic, duration: 9 s, streams: 2}",
            "flows[0].streams: means nothing for a group of kind video",
        ),
        ("{arrivals: {rate: 5 /s, size: 1 kB}, duration: 9 s}", "flows[0].cca: is missing"),
        ("{arrivals: {rate: 5 /s, size: 1 kB}, cca: cubic}", "flows[0].duration: is missing"),
        ("{arrivals: {rate: 5 /s}, cca: cubic, duration: 9 s}", "flows[0].arrivals.size: is missing"),
        (
            "{arrivals: {rate: 5 /s, size: 1 kB}, cca: cubic, duration: 9 s, size: 2 kB}",
            "flows[0].size: means nothing for a group of kind arrivals",
        ),
        (
            "{arrivals: {rate: 0 /s, size: 1 kB}, cca: cubic, duration: 9 s}",
            "flows[0].arrivals.rate: 0 /s is out of range",
        ),
        (
            "{arrivals: {rate: 1000 /s, size: 1 kB}, cca: cubic, duration: 9 s}",
            "flows: 9000 flows; at most 4096",
        ),
        (
            "{arrivals: {rate: 5 /s, size: 0 B}, cca: cubic, duration: 9 s}",
            "flows[0].arrivals.size: 0 B is out of range; give 1 B",
        ),
        (
            "{arrivals: {rate: 5 /s, size: {distribution: pareto, mean: 1 kB}}, cca: cubic, duration: 9 s}",
            "flows[0].arrivals.size.shape: is missing: pareto needs it",
        ),
        (
            RANDOM.format(size="{distribution: pareto, mean: 1 kB, shape: 1}"),
            "flows[0].arrivals.size.shape: '1': input should be greater than 1",
        ),
        (
            "{arrivals: {rate: 5 /s, size: {mean: 1 kB, sigma: 1}}, cca: cubic, duration: 9 s}",
            "flows[0].arrivals.size.sigma: means nothing for fixed",
        ),
        (
            RANDOM.format(size="{distribution: exponential, mean: 2 kB, most: 1 kB}"),
            "flows[0].arrivals.size.most: 1 kB is not above the mean of 2 kB",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(flows, said):
    assert any(line.startswith("f.yaml:5: " + said) for line in refusals(flows)), refusals(flows)


def test_all_mistakes_are_listed_at_once():
    lines = refusals("{ping: 1 us, cca: cubic, size: 1 kB}, {arrivals: {rate: 0 /s, size: 0 B}}")
    keys = {line.split(": ")[1] for line in lines}
    assert keys == {
        "flows[0].cca", "flows[0].ping", "flows[0].size", "flows[1].arrivals.rate",
        "flows[1].arrivals.size", "flows[1].cca", "flows[1].duration",
    }  # fmt: skip


# Pings


def test_a_ping_is_no_flow_and_takes_no_flow_its_pair():
    (cell,) = cells(f"{{ping: 10 ms, label: probe}}, {LONG}, {LONG}", slice_="dumbbell")
    assert [(flow.sender, flow.receiver) for flow in cell.flows] == [("h1", "r1"), ("h2", "r2")]
    assert [(one.group, one.sender, one.receiver, one.rtt.ns) for one in cell.pings] == [
        ("probe", "h1", "r1", 20_000_000)
    ]


def test_a_ping_the_other_way_does_not_shape_that_way():
    (cell,) = cells(f"{LONG}, {{ping: 10 ms, direction: reverse}}")
    assert (cell.pings[0].sender, cell.pings[0].receiver) == ("h2", "h1")
    assert cell.bottleneck.both_directions is False


def test_a_cell_without_pings_has_the_job_that_it_had():
    with_ping, without = (prepare(cells(flows)[0], GUEST).job for flows in (f"{LONG}, {{ping: 1 s}}", LONG))
    assert without.pinging == ()
    assert with_ping.model_copy(update={"pinging": ()}) == without


def test_the_machine_of_its_sender_pings():
    (cell,) = cells(f"{LONG}, {{ping: 1 s}}")
    job = prepare(cell, GUEST).job
    placement = {node.name: "there" if node.name == "h2" else "here" for node in job.nodes}
    parts = split(job, placement)
    assert parts["here"].pinging == job.pinging != ()
    assert parts["there"].pinging == ()


# UDP and videos


def test_the_rate_of_udp_counts_frames():
    (cell,) = cells("{udp: 5 Mbit/s, duration: 4 s, packet_size: 1000 B}")
    udp = cell.flows[0].udp
    assert (cell.flows[0].cca, udp.payload_bytes) == (None, 972)
    assert udp.gap_ns == pytest.approx(1014 * 8 / 5e6 * 1e9)
    # 4 s at 5 Mbit/s are 2465.5 frames of 1014 bytes; the last begins within them.
    assert udp.count_in(cell.flows[0].duration) == 2466
    assert offered_loads(cell) == {"udp": pytest.approx(0.5)}


@given(st.integers(8_000, 10**9), st.integers(44, 1500), st.integers(1, 100))
def test_as_many_datagrams_leave_as_have_an_instant_within_the_duration(rate, packet, seconds):
    udp = Datagrams(rate=Rate(rate), packet_bytes=packet)
    count = udp.count_in(Duration(seconds * 10**9))
    frame_bits = 8 * (packet + 14)
    assert (count - 1) * frame_bits < seconds * rate <= count * frame_bits


def test_udp_needs_no_congestion_control_and_others_still_do():
    (cell,) = cells(f"{{udp: 1 Mbit/s, duration: 9 s}}, {LONG}")
    prepared = prepare(cell, GUEST)
    assert [one.name for one in prepared.job.requires] == ["cubic"]
    assert [control.cca for control in prepared.expected.controls] == ["cubic"]
    assert "datagrams" in prepared.job.flows[0].client_argv


def test_the_deadline_of_udp_leaves_time_for_a_full_buffer():
    text = BASE.format(slice="two_site", flows="{udp: 8 kbit/s, duration: 9 s}", repeat=1)
    text = text.replace("10 Mbit/s", "8 kbit/s").replace("20 ms}", "20 ms, buffer: 100 kB}")
    (cell,) = expand.cells(read.parse(text, source="f.yaml"), definitions.load, seed=1)
    (task,) = prepare(cell, GUEST).job.flows
    # 100 kB at 8 kbit/s take 100 s to leave.
    assert task.deadline_ns > (9 + 100) * 10**9


def test_a_chunk_has_the_bytes_that_it_plays():
    (cell,) = cells("{video: {bitrate: 4 Mbit/s}, cca: cubic, duration: 9 s}")
    assert cell.flows[0].video.chunk_bytes == 1_000_000
    (task,) = prepare(cell, GUEST).job.flows
    sender, player = task.client_argv, task.server_argv
    assert sender[1:3] == ("video", "send")
    assert player[player.index("--chunk-bytes") + 1] == "1000000"


def test_a_video_is_called_so_beside_downloads_of_its_congestion_control():
    (cell,) = cells("{video: {bitrate: 4 Mbit/s}, cca: cubic, duration: 9 s}, {cca: cubic, duration: 9 s}")
    assert [(flow.group, flow.cca) for flow in cell.flows] == [("video", "cubic"), ("cubic", "cubic")]


def test_a_flow_whose_data_goes_back_is_reverse():
    back = "{cca: cubic, duration: 9 s, direction: reverse}"
    (cell,) = cells(f"{LONG}, {back}, {LONG}", slice_="dumbbell")
    assert going_back(cell) == {1}
    there = "{cca: cubic, duration: 9 s, from: x2}"
    (crossing,) = cells(
        f"{LONG}, {there}, {{cca: cubic, duration: 9 s, from: r1, to: h1}}", slice_="parking_lot"
    )
    assert going_back(crossing) == {2}


# Arrivals


def process(**given):
    return ArrivalProcess.model_validate(given)


def drawn(seed, *, duration="20 s", listed=None, **given):
    return list(arrivals(process(**given), listed, seed=str(seed), duration=Duration.parse(duration)))


WEB = "{{arrivals: {{rate: 5 /s, size: {size}}}, cca: cubic, duration: 20 s, label: web}}"


def test_flows_that_come_at_random_have_sizes_starts_and_numbers_in_the_place_of_their_group():
    web = WEB.format(size="100 kB").replace("label", "start: 2 s, label")
    flows = f"{LONG}, {web}, {{cca: reno, duration: 9 s}}"
    (cell,) = cells(flows)
    web = [flow for flow in cell.flows if flow.group == "web"]
    assert [flow.index for flow in cell.flows] == list(range(len(cell.flows)))
    assert [flow.group for flow in cell.flows] == ["cubic.1", *["web"] * len(web), "reno"]
    assert cell.flows[0].size is None
    assert cell.flows[-1].cca == "reno"
    assert {flow.size.bytes for flow in web} == {100_000}
    starts = [flow.start.seconds for flow in web]
    assert starts == sorted(starts)
    assert 2 < starts[0] < starts[-1] < 22


def test_the_seed_decides_and_nothing_else():
    size = "{distribution: lognormal, mean: 100 kB, sigma: 1}"
    first, again, other = (cells(WEB.format(size=size), seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert [flow.start for flow in first[0].flows] != [flow.start for flow in other[0].flows]


def test_repetitions_draw_anew_and_other_sizes_leave_the_instants():
    one, two = cells(WEB.format(size="100 kB"), repeat=2)
    larger = cells(WEB.format(size="200 kB"), repeat=2)[0]
    assert [flow.start for flow in one.flows] != [flow.start for flow in two.flows]
    assert [flow.start for flow in one.flows] == [flow.start for flow in larger.flows]


def test_the_same_flows_come_in_every_condition_of_a_repetition():
    """So that what differs between conditions is not what was drawn."""
    web = WEB.format(size="{distribution: pareto, mean: 100 kB, shape: 1.3}").replace("cubic", "$cca")
    others = "{cca: reno, duration: 9 s, count: $n}"
    text = BASE.format(slice="dumbbell", flows=f"{others}, {web}, {web.replace('web', 'again')}", repeat=2)
    varied = f"{text}\nvary: {{cca: [cubic, bbr3], n: [0, 1, 3]}}\n"
    drawn = {}
    for cell in expand.cells(read.parse(varied, source="f.yaml"), definitions.load, seed=1):
        for label in ("web", "again"):
            came = tuple((flow.start, flow.size) for flow in cell.flows if flow.group == label)
            drawn.setdefault((cell.repetition, label), set()).add(came)
    assert {key: len(came) for key, came in drawn.items()} == dict.fromkeys(drawn, 1)
    assert len({next(iter(came)) for came in drawn.values()}) == 4


def test_gaps_are_exponential_and_counts_are_of_poisson():
    gaps, counts = [], []
    for seed in range(400):
        at = [0.0, *(one.at.seconds for one in drawn(seed, rate="5 /s", size="1 kB"))]
        gaps += np.diff(at)[:50].tolist()
        counts.append(len(at) - 1)
    # The first 50 of about 100: the end of the window, which cuts the last, is 5 deviations away.
    assert stats.kstest(gaps, "expon", args=(0, 1 / 5)).pvalue > 1e-3
    # The variance of a Poisson count is its mean: their ratio × (n − 1) is chi-squared.
    dispersion = np.var(counts, ddof=1) / np.mean(counts) * (len(counts) - 1)
    assert 1e-3 < stats.chi2.cdf(dispersion, len(counts) - 1) < 1 - 1e-3
    assert np.mean(counts) == pytest.approx(100, abs=4 * sqrt(100 / len(counts)))


SHAPES = {
    "exponential": ({}, stats.expon(scale=1e6)),
    "lognormal": ({"sigma": "0.8"}, stats.lognorm(s=0.8, scale=1e6 * exp(-0.32))),
    "pareto": ({"shape": "2.5"}, stats.pareto(b=2.5, scale=1e6 * 1.5 / 2.5)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("most", [None, "1500 kB"])
def test_sizes_are_of_their_distribution_and_of_its_mean(name, most):
    more, expected = SHAPES[name]
    assert expected.mean() == pytest.approx(1e6)
    given = {"distribution": name, "mean": "1 MB", **more} | ({"most": most} if most else {})
    sizes = [one.size.bytes for one in drawn(7, rate="1000 /s", duration="20 s", size=given)]
    reached = expected.cdf(1_500_000) if most else 1.0
    assert max(sizes) <= 1_500_000 or not most
    assert stats.kstest(sizes, lambda x: np.minimum(expected.cdf(x) / reached, 1)).pvalue > 1e-3


def test_sizes_from_a_file_are_drawn_evenly(tmp_path):
    (tmp_path / "web.sizes").write_text("100\n200\n300\n", encoding="utf-8")
    text = BASE.format(slice="two_site", flows=WEB.format(size="{file: web.sizes}"), repeat=1)
    (tmp_path / "f.yaml").write_text(text, encoding="utf-8")
    (cell,) = open_plan(str(tmp_path / "f.yaml"), seed=1).cells
    assert {flow.size.bytes for flow in cell.flows} == {100, 200, 300}
    assert cell.arrivals[0].sizes == "from web.sizes"
    sizes = [one.size.bytes for one in drawn(1, rate="1000 /s", listed=(1, 2), size={"file": "x"})]
    assert stats.binomtest(sizes.count(1), len(sizes)).pvalue > 1e-3


@pytest.mark.parametrize(
    ("text", "said"),
    [("1\n0\n", "f:2: '0' is not a whole number"), ("1\n-3\n", "f:2: '-3'"), ("a\n", "f:1: 'a'"),
     ("", "f has no sizes")],
)  # fmt: skip
def test_a_file_of_sizes_that_is_none_is_refused(text, said):
    with pytest.raises(SpecError, match=said.replace("(", r"\(")):
        parse_sizes(text, source="f")


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=50))
def test_a_file_of_sizes_reads_back(sizes):
    assert parse_sizes("\n".join(map(str, sizes)), source="f") == tuple(sizes)


def test_nothing_that_comes_is_refused_where_there_is_nothing_else():
    with pytest.raises(PlanError, match="0 flows come in cell r1; 1 to 4096 can run"):
        cells("{arrivals: {rate: 0.0001 /s, size: 1 kB}, cca: cubic, duration: 1 s}")


def test_the_load_is_what_the_frames_of_all_sizes_take_of_the_rate():
    (cell,) = cells(WEB.format(size="1448 B"))
    # One full segment each: 1514 bytes of frame.
    expected = len(cell.flows) * 1514 * 8 / 20 / 10e6
    assert offered_loads(cell) == {"web": pytest.approx(expected)}


def test_loads_add_up_over_many_seeds():
    loads = [offered_loads(cells(WEB.format(size="14480 B"), seed=seed)[0])["web"] for seed in range(100)]
    asked = 5 * 15140 * 8 / 10e6
    assert np.mean(loads) == pytest.approx(asked, abs=4 * asked / sqrt(100 * 100))


# Forks of the agent


FORK = """
import sys
from agent.forked import Forked

def program(argv):
    print("told", *argv)
    if argv == ["wait"]:
        import time
        time.sleep(60)
    if argv == ["raise"]:
        raise ValueError("broken")
    return int(argv[0])

with open(sys.argv[1] + ".out", "wb") as out, open(sys.argv[1] + ".err", "wb") as err:
    fork = Forked(program, sys.argv[2:], out, err)
print(fork.pid, flush=True)
if sys.argv[2] == "wait":
    fork.kill()
print(fork.wait(20))
"""


@pytest.mark.parametrize(("word", "status"), [("0", 0), ("3", 3), ("raise", 1), ("wait", -signal.SIGKILL)])
def test_a_fork_ends_as_a_program_would(tmp_path, word, status):
    from pathlib import Path

    import fabbbr

    told = subprocess.run(
        [sys.executable, "-c", FORK, str(tmp_path / "f"), word],
        cwd=Path(fabbbr.__file__).parent, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert told.stdout.split()[1] == str(status)
    if word in ("0", "3"):
        assert (tmp_path / "f.out").read_text() == f"told {word}\n"
    assert ("broken" in (tmp_path / "f.err").read_text()) is (word == "raise")
