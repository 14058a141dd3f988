"""Steps of the loss: what is commanded, what is read back, and what the certificate makes of it."""

from types import SimpleNamespace

import pytest
from places import GUEST, several

from fabbbr.backends.merging import _step
from fabbbr.certify import losses
from fabbbr.certify.counters import Counters, NodeCounters, QdiscCounters
from fabbbr.certify.evidence import Answer, Evidence, StepRecord
from fabbbr.errors import BackendError, PlanError, SpecError
from fabbbr.job.build import prepare
from fabbbr.job.parts import split
from fabbbr.job.records import Capture, Command
from fabbbr.model import Loss
from fabbbr.physics import losses_of
from fabbbr.plan.opening import open_plan
from fabbbr.units import Ratio

TEXT = """id: made
title: made for a test
slice: {slice}
path: {{rate: 20 Mbit/s, rtt: 20 ms{path}}}
steps: [{steps}]
flows: [{flows}]
repeat: 1
"""
DOWN = "{cca: cubic, duration: 9 s}"
OUTAGE = "{at: 3 s, loss: 100 %}, {at: 4 s, loss: 0 %}"


@pytest.fixture
def planned(tmp_path):
    def plan(steps=OUTAGE, path="", flows=DOWN, slice_="two_site"):
        file = tmp_path / "made.yaml"
        text = TEXT.format(steps=steps, path=path, flows=flows, slice=slice_)
        file.write_text(text, encoding="utf-8")
        (cell,) = open_plan(str(file), seed=1).cells
        return cell

    return plan


def netems(commands):
    """What each netem of data is told."""
    lines = (line for command in commands for line in (command.stdin or "").splitlines())
    return [line.partition(" netem ")[2] for line in lines if " handle 10: netem " in line]


def test_a_link_that_will_lose_has_the_place_for_it_and_loses_nothing_before(planned):
    cell = planned()
    assert cell.trunk.loss == Loss(rate=Ratio(0))
    job = prepare(cell, GUEST).job
    first, *_ = netems(job.configure)
    assert "loss" not in first
    begun, ended = (netems(step.commands) for step in job.steps)
    assert begun[0].endswith("loss random 100%")
    assert ended == [first]
    assert [capture.name for step in job.steps for capture in step.counted] == ["losses.w1-eth1"] * 2


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("loss: 2 %", "loss random 2%"),
        ("loss: {model: bursts, rate: 10 %, burst: 5}", "loss gemodel 2.22222222222% 20% 100% 0%"),
        (
            "loss: {model: gilbert_elliott, rate: 0 %, recovery: 10 %, loss_in_good: 2 %}",
            "loss gemodel 0% 10% 100% 2%",
        ),
        ("rtt: 30 ms", "delay 15000us loss random 5%"),
        ("rtt: 30 ms, loss: 0 %", "delay 15000us"),
    ],
)
def test_a_step_leaves_what_it_does_not_name(planned, step, words):
    (task,) = prepare(planned(f"{{at: 3 s, {step}}}", ", loss: 5 %"), GUEST).job.steps
    assert netems(task.commands)[0].endswith(words)
    assert bool(task.counted) == ("loss" in step)


def test_what_is_expected_is_each_loss_in_the_order_of_time_and_of_one_instant_the_last(planned):
    steps = "{at: 5 s, loss: 1 %}, {at: 2 s, loss: 3 %}, {at: 5 s, rtt: 9 ms}, {at: 5 s, loss: 2 %}"
    prepared = prepare(planned(steps, ", loss: 4 %"), GUEST)
    ((loss, later),) = ((wire.loss, wire.later_losses) for wire in prepared.expected.wires if wire.loss)
    assert [each.rate for each in (loss, *later)] == [Ratio.parse(f"{n} %") for n in (4, 3, 2, 2)]
    assert [loss.rate.value for _, loss in losses_of(prepared.cell)] == [0.04, 0.03, 0.01, 0.02]


def test_the_part_of_a_machine_counts_at_its_own_wires_alone(planned):
    job = prepare(planned(), several({"h1": "here", "s1": "here", "w1": "there", "h2": "there"})).job
    parts = split(job, {node.name: "there" if node.name in ("w1", "h2") else "here" for node in job.nodes})
    assert parts["here"].steps == ()
    assert parts["there"].steps == job.steps


def test_what_two_machines_counted_is_one_step():
    one, other = (
        {"at_s": 1.0, "done_s": 1.0 + n, "before": {f"{n}": n}, "after": {f"{n}": -n}} for n in (1, 2)
    )
    assert _step([one, other, {"at_s": 1.0, "done_s": 1.5}]) == {
        "at_s": 1.0, "done_s": 3.0, "before": {"1": 1, "2": 2}, "after": {"1": -1, "2": -2},
    }  # fmt: skip


# The certificate


def counted(packets, drops, standing=0):
    netem = QdiscCounters(
        kind="netem", handle="10:", dev="w1-eth1", packets=packets, bytes=0, drops=drops, backlog=0,
        qlen=standing,
    )  # fmt: skip
    return Counters("made.json", {"w1": NodeCounters(links=(), qdiscs=(netem,), netstat="")})


def checked(cell, before, steps, after):
    """The losses of ``cell`` by name → whether each passed, and what was asked."""
    (wire,) = (wire for wire in prepare(cell, GUEST).expected.wires if wire.loss)
    evidence = SimpleNamespace(before=before, after=after, counted_at_steps=lambda _: iter(steps))
    found = losses.injected(wire, wire.loss, evidence, 1)
    return {check.name.removeprefix("injected loss on "): (check.passed, check.asked) for check in found}


def test_each_loss_is_judged_by_what_came_while_it_held(planned):
    """A thousand packets, ten while tc works, fifty in the outage, five again, a thousand."""
    steps = [(counted(990, 0, 10), counted(995, 5, 10)), (counted(1005, 55, 0), counted(1010, 55, 0))]
    told = checked(planned(), counted(0, 0), steps, counted(2000, 55, 10))
    assert told == {
        "trunk at 0 %": (True, "0.000000% of 2000 packets: 0 to 0"),
        "trunk at 100 %": (True, "100.000000% of 50 packets: 50 to 50"),
    }


@pytest.mark.parametrize(
    ("before", "after", "last", "wrong"),
    [
        (counted(1000, 1), counted(1000, 1), counted(1000, 51), "trunk at 0 %"),
        (counted(1000, 0), counted(1000, 0), counted(1001, 49), "trunk at 100 %"),
    ],
)
def test_one_packet_too_many_or_too_few_is_not_believed(planned, before, after, last, wrong):
    told = checked(planned(), counted(0, 0), [(before, after), (last, last)], last)
    assert [name for name, (passed, _) in told.items() if not passed] == [wrong]


def test_an_outage_that_met_no_packet_and_a_step_after_the_end_are_no_failure(planned):
    held = counted(1000, 0)
    assert all(passed for passed, _ in checked(planned(), counted(0, 0), [(held, held)], held).values())
    assert all(passed for passed, _ in checked(planned(), counted(0, 0), [], held).values())


def test_where_the_loss_never_changes_no_packet_at_all_is_a_failure(planned):
    ((passed, _),) = checked(
        planned("{at: 3 s, rtt: 30 ms}", ", loss: 1 %"), counted(0, 0), [], counted(0, 0)
    ).values()
    assert not passed


ANSWER = {"argv": ("tc",), "node": "w1", "exit": 0, "stdout": "[]", "stderr": ""}


@pytest.mark.parametrize("after", [{}, {"x": ANSWER | {"stdout": "["}}, {"x": ANSWER | {"exit": 1}}])
def test_a_step_that_did_not_count_says_so(after):
    told = {name: Answer(**answer) for name, answer in after.items()}
    capture = Capture(name="x", command=Command(node="w1", argv=("tc",)))
    step = StepRecord(at_s=1.0, done_s=1.0, before={"x": Answer(**ANSWER)}, after=told)
    evidence = SimpleNamespace(steps=(StepRecord(at_s=0.5, done_s=0.5), step))
    with pytest.raises(BackendError, match=r"raw/steps\.json, from tc: x"):
        list(Evidence.counted_at_steps(evidence, capture))


# Refusals


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"path": ", offloads: true"}, "steps[0].loss: with offloads nobody can tell"),
        (
            {"steps": "{at: 1 s, loss: {rate: 1 %, position: before_bottleneck}}"},
            "steps[0].loss.position: a step's loss",
        ),
        ({"steps": "{at: 1 s, loss: 101 %}"}, "steps[0].loss"),
        ({"steps": "{at: 1 s, loss: {rate: 1 %, model: bursts}}"}, "steps[0].loss.burst: is missing"),
        (
            {"flows": DOWN + ", {cca: cubic, duration: 9 s, direction: reverse}", "slice_": "dumbbell"},
            "steps[0].loss: loss on link trunk would fall on the acknowledgements",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_refused_where_it_stands(planned, how, said):
    with pytest.raises((SpecError, PlanError)) as caught:
        planned(**how)
    assert said in str(caught.value)
