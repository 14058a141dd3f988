"""What planning costs: about as many instructions for each host, flow and step, however many there are."""

import pytest
from counted_work import work
from places import GUEST

from fabbbr.job.build import prepare
from fabbbr.plan.estimate import estimate
from fabbbr.plan.opening import open_plan

TEXT = (
    "id: large\ntitle: t\nslice: {slice}\npath: {{rate: 1 Gbit/s, rtt: {rtt}}}\nflows: "
    "[{flows}]\nrepeat: 2\n{more}\n"
)
FLOW = "cca: cubic, duration: 60 s"


def dumbbell(n, rtt="40 ms", more=""):
    return TEXT.format(
        slice=f"{{name: dumbbell, hosts: {n}}}", rtt=rtt, flows=f"{{{FLOW}, count: {n}}}", more=more
    )


def by_sender(n):
    return dumbbell(n, rtt="{" + ", ".join(f"h{k}: {2 * k} ms" for k in range(1, n + 1)) + "}")


def reverse(n):
    return dumbbell(n).replace("count", "direction: reverse, count")


def many_flows(n):
    return TEXT.format(slice="two_site", rtt="40 ms", flows=f"{{{FLOW}, count: {n}}}", more="")


def many_groups(n):
    return TEXT.format(slice="two_site", rtt="40 ms", flows=", ".join([f"{{{FLOW}}}"] * n), more="")


def named_hosts(n):
    flows = ", ".join(f"{{{FLOW}, from: h{k}}}" for k in range(1, n + 1))
    return TEXT.format(slice=f"{{name: dumbbell, hosts: {n}}}", rtt="40 ms", flows=flows, more="")


def many_steps(n):
    steps = ", ".join(
        f"{{at: {k} ms, rate: {k + 10} Mbit/s, rtt: {2 * k + 40} ms, buffer: 1 BDP}}" for k in range(n)
    )
    return many_flows(20).replace("repeat: 2", f"repeat: 2\nsteps: [{steps}]")


def policed(n):
    """Of a bucket of one's own a pair of hosts is looked for that shows it."""
    both_ways = "rate: 1 Gbit/s, burst: 1 MB, reverse: 100 Mbit/s"
    return dumbbell(n).replace("rate: 1 Gbit/s", both_ways)


SHAPES = [dumbbell, policed, by_sender, reverse, many_flows, many_groups, named_hosts, many_steps]


def planned_in(file, text):
    file.write_text(text, encoding="utf-8")
    return open_plan(str(file), seed=1).cells


def growth(tmp_path, of):
    """Of the work when everything is doubled; a first call has paid for imports."""
    of(20)
    small, large = work(lambda: of(40)), work(lambda: of(80))
    return large / small


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_hosts_flows_or_steps_are_at_most_twice_the_work_to_plan(tmp_path, shape):
    assert growth(tmp_path, lambda n: planned_in(tmp_path / "e.yaml", shape(n))) < 2.2


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_hosts_flows_or_steps_are_at_most_twice_the_work_to_estimate(tmp_path, shape):
    cells = {n: planned_in(tmp_path / "e.yaml", shape(n)) for n in (20, 40, 80)}
    assert growth(tmp_path, lambda n: estimate(cells[n], GUEST)) < 2.2


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_hosts_flows_or_steps_are_at_most_twice_the_work_to_command(tmp_path, shape):
    cells = {n: planned_in(tmp_path / "e.yaml", shape(n)) for n in (20, 40, 80)}
    assert growth(tmp_path, lambda n: prepare(cells[n][0], GUEST)) < 2.2
