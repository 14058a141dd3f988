"""What is made of pings and of iperf3, and what stands on which machine."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offers import CHOICE, two_site

from fabbbr.backends.paths import Answer
from fabbbr.reserve.records import LiveMachine, LiveSlice
from fabbbr.reserve.reservation import Options, reserve
from fabbbr.slice import measure
from fabbbr.slice.measure import read_iperf3, read_ping


def answer(stdout="", stderr="", status=0):
    return Answer(exit=status, stdout=stdout, stderr=stderr)


PINGED = """PING 10.77.0.2 (10.77.0.2) 56(84) bytes of data.

--- 10.77.0.2 ping statistics ---
10 packets transmitted, {received} received, {percent}% packet loss, time 1832ms
{times}"""
TIMES = "rtt min/avg/max/mdev = 26.012/26.300/27.001/0.200 ms, pipe 2\n"


@pytest.mark.parametrize(
    ("told", "rtt_s", "lost", "said"),
    [
        (answer(PINGED.format(received=10, percent=0, times=TIMES)), 0.026012, 0.0, ""),
        (answer(PINGED.format(received=7, percent=30, times=TIMES)), 0.026012, 0.3, ""),
        (answer(PINGED.format(received=0, percent=100, times=""), status=1), None, 1.0, "no ping came back"),
        (
            answer("", "ping: connect: Network is unreachable\n", 2),
            None,
            1.0,
            "ping: ping: connect: Network is",
        ),
        (answer("", "", 127), None, 1.0, "ping: ended with 127"),
    ],
)
def test_pings(told, rtt_s, lost, said):
    got = read_ping(told)
    assert (got[0], pytest.approx(got[1])) == (rtt_s, lost)
    assert got[2].startswith(said)
    assert bool(got[2]) == bool(said)


@pytest.mark.parametrize(
    ("told", "rate_bps", "said"),
    [
        (answer(json.dumps({"end": {"sum_received": {"bits_per_second": 9.4e9}}})), 9.4e9, ""),
        (answer(json.dumps({"error": "unable to connect: Connection refused"})), None, "Connection refused"),
        (answer(json.dumps({"end": {}})), None, "iperf3"),
        (answer("", "iperf3: No such file or directory", 127), None, "No such file"),
        (answer("[]"), None, "iperf3"),
    ],
)
def test_rates(told, rate_bps, said):
    got = read_iperf3(told)
    assert got[0] == rate_bps
    assert said in got[1]


@given(text=st.text())
def test_whatever_the_tools_print_is_a_figure_or_a_reason(text):
    rtt_s, _, said = read_ping(answer(text))
    assert (rtt_s is None) == bool(said)
    rate_bps, said = read_iperf3(answer(text))
    assert (rate_bps is None) == bool(said)


def live(reservation):
    machines = tuple(
        LiveMachine(
            name=machine.name,
            site=machine.site,
            address="-",
            user="root",
            interfaces={
                cable.link: f"mac of {cable.link} on {machine.name}"
                for cable in reservation.cables
                if machine.name in (cable.a_machine, cable.b_machine)
            },
        )
        for machine in reservation.machines
    )
    return LiveSlice(name="s", id="1", state="ok", machines=machines)


def test_hosts_have_addresses_switches_have_none_and_cables_between_machines_are_their_interfaces():
    topology = two_site()
    reservation = reserve("s1", CHOICE, topology, Options())
    stands = measure.plan(reservation, live(reservation), topology)
    assert {name: what.nodes for name, what in stands.items()} == {
        "h1": {"h1": "10.77.0.1/16"}, "h2": {"h2": "10.77.0.2/16"}, "sw": {"s1": None},
    }  # fmt: skip
    assert [(side.node, side.mac) for side in stands["sw"].sides] == [
        ("s1", "mac of access on sw"), ("s1", "mac of trunk on sw"),
    ]  # fmt: skip
    assert all(not what.cables for what in stands.values())


def test_what_stands_on_one_machine_is_joined_there():
    topology = two_site("A", "A")
    reservation = reserve("s1", CHOICE, topology, Options(placement={"h1": "m", "s1": "m", "h2": "n"}))
    stands = measure.plan(reservation, live(reservation), topology)
    ((a, b),) = stands["m"].cables
    assert (a.node, b.node) == ("h1", "s1")
    assert a.name != b.name
    assert [side.mac for side in stands["n"].sides] == ["mac of trunk on n"]


class Paths:
    """Answers as a network does that is up a little late: what is asked first takes 190 ms."""

    def __init__(self, then="0.040"):
        self.asked = []
        self.then = then

    def run(self, node, argv, *, timeout_s):
        first = not self.asked
        self.asked.append((node, argv))
        if argv[0] == "ping":
            least = "190.1" if first else self.then
            times = f"rtt min/avg/max/mdev = {least}/200.0/300.0/1.0 ms"
            return answer(f"3 packets transmitted, 3 received, 0% packet loss\n{times}")
        return answer(json.dumps({"end": {"sum_received": {"bits_per_second": 1e9}}}))


def test_what_the_first_pings_waited_for_is_no_round_trip():
    pair = measure._measured(Paths(), "h1", "h2", "10.77.0.2", lambda _: None, with_rate=True)
    assert pair.rtt_s == 0.040e-3
    assert pair.rate_bps == 1e9


def test_where_computing_takes_no_time_there_is_no_rate_to_measure():
    paths = Paths("0.000")
    pair = measure._measured(paths, "h1", "h2", "10.77.0.2", lambda _: None, with_rate=True)
    assert (pair.rtt_s, pair.rate_bps) == (0, None)
    assert "no time" in pair.said
    assert {argv[0] for _, argv in paths.asked} == {"ping"}
