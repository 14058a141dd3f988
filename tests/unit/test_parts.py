"""A job in parts: each thing goes to one machine, and what the parts leave is what one machine leaves."""

import json
from collections import Counter

import pytest
from golden_cell import CELL, RAW
from guest.cells import experiment
from hypothesis import given
from hypothesis import strategies as st
from places import GUEST

from fabbbr.backends.merging import merge
from fabbbr.errors import BackendError, PlanError
from fabbbr.job.build import prepare
from fabbbr.job.parts import split
from fabbbr.job.records import Command
from fabbbr.plan.opening import open_plan

EPOCH_ELSEWHERE_S = 77.5


def dumbbell_job(folder):
    file = folder / "parts.yaml"
    text = experiment(
        "parts",
        slice_="dumbbell",
        path="rate: 20 Mbit/s, rtt: 20 ms, loss: 1 %",
        flows="{cca: cubic, duration: 4 s}, {cca: bbr1, duration: 3 s}, {cca: cubic, size: 300 kB}",
        more="steps: [{at: 2 s, rate: 10 Mbit/s, rtt: 30 ms}, {at: 1 s, rate: 5 Mbit/s}]",
    )
    file.write_text(text, encoding="utf-8")
    (cell,) = open_plan(str(file), seed=1, profile="default").cells
    return prepare(cell, GUEST).job


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    return {"golden": prepare(CELL, GUEST).job, "dumbbell": dumbbell_job(tmp_path_factory.mktemp("parts"))}


JOBS = st.sampled_from(["golden", "dumbbell"])


def placements(whole, data):
    return {node.name: data.draw(st.sampled_from("abc"), label=node.name) for node in whole.nodes}


def named(part):
    return {node.name for node in part.nodes}


@given(which=JOBS, data=st.data())
def test_each_command_capture_requirement_and_sampler_goes_to_the_machine_of_its_node_and_keeps_its_order(
    jobs, which, data
):
    whole = jobs[which]
    placement = placements(whole, data)
    parts = split(whole, placement)
    for field, node_of in (
        ("nodes", lambda node: node.name),
        ("configure", lambda command: command.node),
        ("readback", lambda capture: capture.command.node),
        ("pings", lambda capture: capture.command.node),
        ("requires", lambda wanted: wanted.node),
        ("socket_nodes", str),
        ("queue_nodes", str),
    ):
        for machine, part in parts.items():
            expected = [one for one in getattr(whole, field) if placement[node_of(one)] == machine]
            assert list(getattr(part, field)) == expected, (field, machine)


@given(which=JOBS, data=st.data())
def test_each_end_of_a_flow_and_of_a_cable_is_on_one_machine_whose_part_knows_the_other_end_too(
    jobs, which, data
):
    whole = jobs[which]
    parts = split(whole, placements(whole, data)).values()
    for flow in whole.flows:
        for node in (flow.client_node, flow.server_node):
            assert [flow in part.flows for part in parts if node in named(part)] == [True]
    for cable in whole.cables:
        for side in (cable.a, cable.b):
            assert [cable in part.cables for part in parts if side.node in named(part)] == [True]
    for part in parts:
        assert all({flow.client_node, flow.server_node} & named(part) for flow in part.flows)
        assert all({cable.a.node, cable.b.node} & named(part) for cable in part.cables)


@given(which=JOBS, data=st.data())
def test_each_command_of_a_step_is_carried_out_once_and_at_its_instant(jobs, which, data):
    whole = jobs[which]
    placement = placements(whole, data)
    parts = split(whole, placement)

    def commands(one):
        return Counter(
            (step.at_ns, command.model_dump_json()) for step in one.steps for command in step.commands
        )

    assert sum(map(commands, parts.values()), Counter()) == commands(whole)
    for machine, part in parts.items():
        assert {placement[c.node] for step in part.steps for c in step.commands} <= {machine}
        assert all(step.commands for step in part.steps)


@given(which=JOBS, data=st.data())
def test_what_is_of_no_node_is_in_every_part(jobs, which, data):
    whole = jobs[which]
    for part in split(whole, placements(whole, data)).values():
        for field in ("burst", "settle_ns", "mtu_bytes", "sample_period_ns", "end_ns", "environment"):
            assert getattr(part, field) == getattr(whole, field)


def test_a_job_on_one_machine_is_its_only_part(jobs):
    for whole in jobs.values():
        assert split(whole, {node.name: "here" for node in whole.nodes}) == {"here": whole}


def test_a_node_without_a_machine_is_refused_by_name(jobs):
    with pytest.raises(PlanError, match="w1"):
        split(jobs["golden"], {"h1": "a", "h2": "a", "s1": "b"})


def test_a_command_for_no_node_is_refused_where_there_are_several_machines(jobs):
    whole = jobs["golden"].model_copy(update={"configure": (Command(argv=("modprobe", "tcp_bbr")),)})
    machines = {"h1": "a", "h2": "a", "s1": "b", "w1": "b"}
    with pytest.raises(PlanError, match="modprobe tcp_bbr"):
        split(whole, machines)
    assert split(whole, dict.fromkeys(machines, "a")) == {"a": whole}


# Raw files


def of_whole(name):
    """What the recorded cell left; its servers as if each had ended in its own way."""
    told = json.loads((RAW / name).read_bytes())
    if name != "flows.json":
        return told
    return [record | {"server_exit": -record["flow"]} for record in told]


def of_part(name, part, whole):
    """What a part would have left of a raw file of the whole; None for a file of another machine."""
    here, told = named(part), of_whole(name)
    if name == "readback.json":
        return {key: answer for key, answer in told.items() if answer["node"] in here}
    if name == "preflight.json":
        burst, seen = whole.burst, dict(told["burst"])
        if burst.receiver not in here:
            del seen["arrivals"]
        if burst.watch_node not in here:
            del seen["queues_at_peak"]
        pings = {key: answer for key, answer in told["pings"].items() if answer["node"] in here}
        return {"pings": pings, "burst": seen}
    if name.startswith("counters."):
        return {node: counted for node, counted in told.items() if node in here}
    if name == "steps.json":
        own = sorted(step.at_ns for step in part.steps)
        return [step for step in told if round(step["at_s"] * 1e9) in own] or None
    assert name == "flows.json"
    return [
        flow_of_part(record, flow, here)
        for record in told
        for flow in part.flows
        if flow.index == record["flow"]
    ]


def flow_of_part(record, flow, here):
    if flow.client_node in here:
        return record if flow.server_node in here else record | {"server_exit": None}
    return {"flow": flow.index, "epoch_s": EPOCH_ELSEWHERE_S, "server_exit": record["server_exit"]}


def machine_of_file(name, whole, placement):
    kind, node, *_ = name.split(".")
    if kind in ("sockets", "queues"):
        return placement[node]
    flow = next(flow for flow in whole.flows if kind == f"flow-{flow.index}")
    return placement[flow.client_node if node == "client" else flow.server_node]


def left_by_parts(whole, placement, folder):
    """Machine → a folder with what its part of the recorded cell would have left."""
    parts = split(whole, placement)
    folders = {machine: folder / machine for machine in parts}
    for machine, part in parts.items():
        folders[machine].mkdir()
        for name in ("readback.json", "preflight.json", "counters.before.json", "counters.after.json",
                     "flows.json", "steps.json"):  # fmt: skip
            told = of_part(name, part, whole)
            if told is not None:
                (folders[machine] / name).write_text(json.dumps(told), encoding="utf-8")
    for path in RAW.iterdir():
        if path.name.partition(".")[0].partition("-")[0] in ("flow", "sockets", "queues"):
            to = folders[machine_of_file(path.name, whole, placement)]
            (to / path.name).write_bytes(path.read_bytes())
    return parts, folders


@given(data=st.data())
def test_the_raw_files_of_the_parts_merge_into_those_of_one_machine(jobs, tmp_path_factory, data):
    whole = jobs["golden"]
    placement = placements(whole, data)
    folder = tmp_path_factory.mktemp("merged")
    parts, folders = left_by_parts(whole, placement, folder)
    raw = folder / "raw"
    raw.mkdir()
    merge(whole, parts, folders, raw)
    merged = {path.name: path.read_bytes() for path in raw.iterdir()}
    expected = {path.name: path.read_bytes() for path in RAW.iterdir()} | {"console.log": b""}
    apart = {flow.index for flow in whole.flows if placement[flow.client_node] != placement[flow.server_node]}
    flows = [
        record | ({"server_epoch_s": EPOCH_ELSEWHERE_S} if record["flow"] in apart else {})
        for record in of_whole("flows.json")
    ]
    assert merged == expected | {"flows.json": json.dumps(flows).encode()}


def test_a_step_that_one_of_its_machines_did_not_reach_was_not_carried_out(jobs, tmp_path):
    whole = jobs["dumbbell"]
    placement = {node.name: "wire" if node.kind == "wire" else "rest" for node in whole.nodes}
    parts = split(whole, placement)
    assert [len(part.steps) for part in parts.values()] == [2, 1]
    folders = {machine: tmp_path / machine for machine in parts}
    nothing = {name: {} for name in ("readback.json", "counters.before.json", "counters.after.json")}
    nothing |= {"preflight.json": {"pings": {}, "burst": {}}, "flows.json": []}
    for machine, steps in (("rest", [(1.0, 1.1), (2.0, 2.1)]), ("wire", [])):
        folders[machine].mkdir()
        told = [{"at_s": at_s, "done_s": done_s} for at_s, done_s in steps]
        for name, value in (nothing | ({"steps.json": told} if told else {})).items():
            (folders[machine] / name).write_text(json.dumps(value), encoding="utf-8")
    (tmp_path / "raw").mkdir()
    merge(whole, parts, folders, tmp_path / "raw")
    assert json.loads((tmp_path / "raw" / "steps.json").read_bytes()) == [{"at_s": 1.0, "done_s": 1.1}]
    (folders["wire"] / "steps.json").write_text('[{"at_s": 2.0, "done_s": 2.3}]', encoding="utf-8")
    merge(whole, parts, folders, tmp_path / "raw")
    carried_out = json.loads((tmp_path / "raw" / "steps.json").read_bytes())
    assert carried_out == [{"at_s": 1.0, "done_s": 1.1}, {"at_s": 2.0, "done_s": 2.3}]


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda folder: (folder / "flows.json").unlink(), "machine b: raw/flows.json cannot be read"),
        (lambda folder: (folder / "flows.json").write_text("[{"), "machine b: raw/flows.json cannot be read"),
        (
            lambda folder: (folder / "sockets.h1.txt").write_text(""),
            "machine b: raw/sockets.h1.txt comes from another machine too",
        ),
    ],
)
def test_a_file_that_is_missing_damaged_or_there_twice_is_refused_with_its_machine(
    jobs, tmp_path, harm, said
):
    whole = jobs["golden"]
    placement = {"h1": "a", "h2": "b", "s1": "b", "w1": "b"}
    parts, folders = left_by_parts(whole, placement, tmp_path)
    harm(folders["b"])
    (tmp_path / "raw").mkdir()
    with pytest.raises(BackendError, match=said):
        merge(whole, parts, folders, tmp_path / "raw")
