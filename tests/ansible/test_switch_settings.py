"""What stands at a switch's ports: settings, the lines for tc, and what tc told of them inside a guest."""

import copy
import importlib
import json
from itertools import permutations
from pathlib import Path

import ansible.module_utils
import pytest
from guest.playbooks import BOTTLENECK, LINE, SETTINGS
from places import GUEST
from rooms import PLAYBOOKS

from fabbbr.job.build import prepare
from fabbbr.plan.opening import open_plan

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "qdiscs.json").read_text(encoding="utf-8"))
DEVICE = "s1-eth2"


@pytest.fixture(scope="module")
def queues():
    """The module utility of that name, found as Ansible finds it."""
    folders = list(ansible.module_utils.__path__)
    ansible.module_utils.__path__.append(str(PLAYBOOKS / "roles" / "software_switch" / "module_utils"))
    yield importlib.import_module("ansible.module_utils.fab_queues")
    ansible.module_utils.__path__[:] = folders


def told(name):
    return [{"dev": DEVICE, **one} for one in copy.deepcopy(GOLDEN[name])]


@pytest.mark.parametrize("name", SETTINGS)
def test_what_tc_told_of_a_setting_is_that_setting(queues, name):
    assert queues.differences(DEVICE, queues.port_of(DEVICE, SETTINGS[name]).leaving, told(name)) == []


@pytest.mark.parametrize(("name", "other"), list(permutations(SETTINGS, 2)))
def test_what_tc_told_of_a_setting_is_no_other(queues, name, other):
    assert queues.differences(DEVICE, queues.port_of(DEVICE, SETTINGS[name]).leaving, told(other))


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("taildrop", (0, "options", "rate"), 12_499_999),
        ("taildrop", (0, "options", "limit"), 499_999),
        ("taildrop", (0, "options", "burst_raw"), "f422"),
        ("taildrop", (0, "handle"), "8001:"),
        ("10 Gbit/s", (0, "options", "burst_raw"), "3d06"),
        ("codel", (1, "options", "limit"), 331),
        ("codel, ecn", (1, "options", "ecn"), None),
        ("fq_pie", (1, "options", "memory_limit"), 1_000_000),
        ("fq_pie, ecn", (1, "options", "ecn"), None),
        ("fq_codel", (1, "options", "limit"), 331),
        ("fq_codel", (1, "options", "memory_limit"), 1_000_000),
        ("fq_codel", (1, "options", "ecn"), True),
        ("pie, ecn", (1, "options", "ecn"), None),
        ("red", (1, "options", "adaptive"), False),
        ("cake", (1, "options", "memlimit"), 500_001),
        ("cake", (1, "options", "diffserv"), "diffserv3"),
        ("line", (0, "options", "limit"), 1000),
        ("line", (0, "options", "delay", "delay"), 0.012347),
        ("line", (0, "options", "delay", "jitter"), 0.001),
        ("line", (0, "options", "loss-random", "loss"), 0.000124),
        ("line", (0, "options", "loss-random", "correlation"), 0.25),
        ("line", (0, "options", "duplicate"), {"duplicate": 0.1}),
    ],
)
def test_any_other_value_is_a_difference(queues, name, path, value):
    changed = told(name)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert queues.differences(DEVICE, queues.port_of(DEVICE, SETTINGS[name]).leaving, changed)


def test_a_missing_queueing_discipline_and_one_more_are_differences(queues):
    wanted = queues.port_of(DEVICE, SETTINGS["fq_codel"]).leaving
    assert queues.differences(DEVICE, wanted, [])
    assert queues.differences(DEVICE, wanted, told("taildrop"))
    assert queues.differences(DEVICE, queues.port_of(DEVICE, BOTTLENECK).leaving, told("fq_codel"))
    assert queues.differences("another", wanted, told("fq_codel"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({**BOTTLENECK, **LINE}, "never stand at one interface"),
        ({"rate_bps": 8000}, "burst_bytes, buffer_bytes is missing"),
        ({"aqm": "pie"}, "give rate_bps, burst_bytes and buffer_bytes too"),
        ({"ecn": True}, "give rate_bps, burst_bytes and buffer_bytes too"),
        ({**BOTTLENECK, "rate_bps": 99_999_999}, "no multiple of 8"),
        ({**BOTTLENECK, "rate_bps": 0}, "must be positive"),
        ({**BOTTLENECK, "buffer_bytes": -1}, "must be positive"),
        ({**BOTTLENECK, "ecn": True}, "not of taildrop"),
        ({**BOTTLENECK, "aqm": "cake", "ecn": True}, "not of cake"),
        ({"loss": 0.1}, "limit_packets must say"),
        ({"delay_s": 0.1, "limit_packets": 0}, "limit_packets must say"),
        ({"limit_packets": 5}, "give loss or delay_s too"),
        ({"arriving_limit_packets": 5}, "give arriving_loss or arriving_delay_s too"),
        ({"loss": 1.5, "limit_packets": 5}, "a share from 0 to 1"),
        ({"loss": 1e-11, "limit_packets": 5}, "a share from 0 to 1"),
        ({"delay_s": 1.5e-6, "limit_packets": 5}, "whole microseconds"),
        ({"arriving_delay_s": -0.1, "arriving_limit_packets": 5}, "whole microseconds"),
    ],
)
def test_settings_that_contradict_themselves_or_cannot_be_exact_are_refused(queues, settings, said):
    with pytest.raises(Exception, match=said) as refusal:
        queues.port_of(DEVICE, settings)
    assert type(refusal.value).__name__ == "RefusedError"
    assert DEVICE in str(refusal.value)


MARKS = [(aqm, ecn) for ecn in (False, True) for aqm in ("codel", "fq_codel", "pie", "fq_pie", "red")]


@pytest.mark.parametrize(("aqm", "ecn"), [("taildrop", False), ("cake", False), *MARKS])
@pytest.mark.parametrize("buffer_bytes", [500_000, 13_000, 6_000])
def test_the_lines_are_those_of_fabbbrs_own_jobs(queues, tmp_path, aqm, ecn, buffer_bytes):
    more = f", aqm: {aqm}" + (", ecn: true" if ecn else "")
    file = tmp_path / "experiment.yaml"
    file.write_text(
        "id: lines\ntitle: t\nslice: two_site\n"
        f"path: {{rate: 100 Mbit/s, rtt: 20 ms, buffer: {buffer_bytes} B{more}}}\n"
        "flows: [{cca: cubic, duration: 1 s}]\nrepeat: 1\n",
        encoding="utf-8",
    )
    job = prepare(open_plan(str(file), seed=1).cells[0], GUEST).job
    batches = (c.stdin for c in (*job.configure, *job.aqms) if c.node == "s1" and c.argv[0] == "tc")
    lines = [line for batch in batches for line in batch.splitlines()]
    device = lines[0].split()[3]
    settings = {**BOTTLENECK, "burst_bytes": 12_500, "aqm": aqm, "ecn": ecn, "buffer_bytes": buffer_bytes}
    assert queues.lines_of(device, queues.port_of(device, settings).leaving) == lines
