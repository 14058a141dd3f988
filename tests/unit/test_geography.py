"""Cells on a network that has round trips of its own: what is left to netem, and what cannot be had."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import GUEST

from fabbbr.errors import PlanError
from fabbbr.job.build import prepare
from fabbbr.job.geography import left_to_emulate, misfit
from fabbbr.job.records import placed
from fabbbr.plan.opening import open_plan
from fabbbr.testbed import REAL_TIME, Kernel, Machine
from fabbbr.units import Duration

TEXT = """id: made
title: made for a test
slice: two_site
path: {{rate: 100 Mbit/s, rtt: {rtt}{more}}}
flows: [{{cca: cubic, duration: 10 s}}]
repeat: 1
{steps}
"""
MS = 1_000_000
CARDS = {
    "access": {"h1": "02:aa:00:00:00:01", "s1": "02:aa:00:00:00:02"},
    "trunk": {"s1": "02:aa:00:00:00:03", "h2": "02:aa:00:00:00:04"},
}
MACHINE = Machine(kernel=Kernel(release="0", timer_hz=1000))


def cell(folder, rtt="40 ms", more="", steps=""):
    file = folder / "made.yaml"
    file.write_text(TEXT.format(rtt=rtt, more=more, steps=steps), encoding="utf-8")
    return open_plan(str(file), seed=1).cells[0]


def far_apart(rtt_s, *, emulates=False, **more):
    """Three machines; ``rtt_s`` between the switch and the receiver."""
    return GUEST.model_copy(
        update={
            "clock": "real",
            "tolerances": REAL_TIME,
            "machines": {"a": MACHINE, "switch": MACHINE, "b": MACHINE},
            "placement": {"h1": "a", "s1": "switch", "h2": "b"},
            "interfaces": CARDS,
            "network_rtt_s": {"access": 0.0002, "trunk": rtt_s},
            "emulates_rtt": emulates,
            **more,
        }
    )


def netem_lines(prepared):
    told = (command.stdin for command in prepared.job.configure if command.stdin)
    return [line for batch in told for line in batch.splitlines() if "netem" in line]


def test_a_round_trip_that_the_network_has_is_never_faked(tmp_path):
    prepared = prepare(cell(tmp_path), far_apart(0.0401))
    assert netem_lines(prepared) == []
    assert [node.kind for node in prepared.job.nodes] == ["host", "host", "switch"]
    assert [trip.propagation_s for trip in prepared.expected.round_trips] == [0.04]


def test_loss_gets_a_wire_beside_the_switch_and_no_delay(tmp_path):
    prepared = prepare(cell(tmp_path, more=", loss: 1 %"), far_apart(0.0401))
    assert netem_lines(prepared)
    assert not any("delay" in line for line in netem_lines(prepared))
    assert placed(prepared.job.nodes, prepared.job.cables, prepared.testbed)["w1"] == "switch"


@pytest.mark.parametrize(
    ("there_s", "emulates", "remedy"),
    [(0.02, False, "--emulate rtt"), (0.06, False, "nearer"), (0.06, True, "nearer")],
)
def test_a_round_trip_that_cannot_be_had_is_refused_with_the_remedy(tmp_path, there_s, emulates, remedy):
    with pytest.raises(PlanError, match=remedy) as refused:
        prepare(cell(tmp_path), far_apart(there_s, emulates=emulates))
    assert "40 ms" in str(refused.value)


@given(there_ms=st.integers(0, 39))
def test_what_is_emulated_and_what_is_there_make_what_was_asked(tmp_path_factory, there_ms):
    asked = cell(tmp_path_factory.mktemp("made"))
    left = left_to_emulate(asked, far_apart(there_ms / 1e3, emulates=True))
    delay = next(link.delay for link in left.links if link.name == "trunk")
    assert 2 * delay.ns + there_ms * MS == 40 * MS


def test_a_step_of_the_round_trip_counts_from_what_is_there(tmp_path):
    asked = cell(tmp_path, steps="steps: [{at: 5 s, rtt: 60 ms}]")
    assert misfit(asked, far_apart(0.04)) is not None
    left = left_to_emulate(asked, far_apart(0.04, emulates=True))
    assert [step.rtt for step in left.steps] == [Duration(20 * MS)]
    # The link needs a wire from the beginning, though it delays nothing yet.
    assert netem_lines(prepare(asked, far_apart(0.04, emulates=True)))


def test_a_place_without_a_network_of_its_own_leaves_the_cell_alone(tmp_path):
    asked = cell(tmp_path)
    assert left_to_emulate(asked, GUEST) is asked


@pytest.mark.parametrize("position", ["after_bottleneck", "before_bottleneck"])
def test_a_wire_has_the_switchs_network_card_and_the_switch_its_address(tmp_path, position):
    """What leaves the machine has the card's own address: others a shared card would not let out."""
    loss = f", loss: {{rate: 1 %, position: {position}}}"
    place = far_apart(0.04)
    prepared = prepare(cell(tmp_path, more=loss), place)
    link = "trunk" if position == "after_bottleneck" else "access"
    sides = [side for cable in prepared.job.cables for side in (cable.a, cable.b) if side.link == link]
    by_node = {(side.node, side.peer_node): side.mac for side in sides}
    card = place.interfaces[link]["s1"]
    host = "h2" if link == "trunk" else "h1"
    assert by_node["w1", host] == by_node["s1", "w1"] == card
    assert by_node["w1", "s1"] != card
    assert by_node[host, "w1"] == place.interfaces[link][host]
    (network,) = [cable for cable in prepared.expected.network_cables if cable.a.link == link]
    assert {network.a.node, network.b.node} == {"w1", host}
