"""Commands of the agent: exit status, output and standard error are always given."""

import os
from pathlib import Path

import pytest

from fabbbr.agent.namespace import Namespaces, new


@pytest.fixture
def here():
    return Namespaces({})


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["true"], {"exit": 0, "stdout": "", "stderr": ""}),
        (["false"], {"exit": 1, "stdout": "", "stderr": ""}),
        (["sh", "-c", "echo out; echo err >&2; exit 3"], {"exit": 3, "stdout": "out\n", "stderr": "err\n"}),
        (["no-such-tool"], {"exit": 127, "stdout": "", "stderr": "no-such-tool: No such file or directory"}),
    ],
)  # fmt: skip
def test_a_command_tells_its_status_and_both_outputs(here, argv, expected):
    assert here.run({"node": None, "argv": argv}) == expected


def test_a_command_reads_what_it_is_given_and_else_nothing(here):
    assert here.run({"node": None, "argv": ["cat"], "stdin": "lines\n"})["stdout"] == "lines\n"
    assert here.run({"node": None, "argv": ["cat"]})["stdout"] == ""


def test_a_command_that_takes_too_long_is_ended_with_124_and_keeps_what_it_said(here):
    answer = here.run({"node": None, "argv": ["sh", "-c", "echo first; exec sleep 60"], "timeout_s": 0.3})
    assert answer["exit"] == 124
    assert answer["stdout"] == "first\n"
    assert "still running after 0.3 s" in answer["stderr"]


@pytest.fixture
def node():
    if os.geteuid() != 0:
        pytest.skip("only root may make name spaces")
    descriptor = new()
    yield descriptor
    os.close(descriptor)


def own_namespace():
    return Path("/proc/thread-self/ns/net").stat().st_ino


def test_a_block_inside_a_node_is_in_its_name_space_and_the_way_back_is_taken_even_after_an_error(node):
    before = own_namespace()
    namespaces = Namespaces({"h1": node})
    with namespaces.inside("h1"):
        assert own_namespace() == os.fstat(node).st_ino != before
    with pytest.raises(ZeroDivisionError), namespaces.inside("h1"):
        raise ZeroDivisionError
    assert own_namespace() == before


def test_a_command_on_a_node_sees_only_the_interfaces_of_that_node(node):
    answer = Namespaces({"h1": node}).run({"node": "h1", "argv": ["ip", "-o", "link"]})
    assert answer["exit"] == 0
    assert [line.split()[1] for line in answer["stdout"].splitlines()] == ["lo:"]
