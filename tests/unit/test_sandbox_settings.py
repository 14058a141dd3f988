"""Faults and settings as they are written, and as they are read back on the other side of the door."""

import argparse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.errors import UsageError
from fabbbr.sandbox.faults import KEYS, Fault, Faults
from fabbbr.sandbox.options import add_options
from fabbbr.sandbox.settings import Settings, from_arguments

WORDS = st.text("abcxyz019_-/", min_size=1, max_size=8)
VALUES = {
    "node": WORDS,
    "site": WORDS,
    "slice": WORDS,
    "path": WORDS,
    "method": st.sampled_from(("GET", "POST")),
    "when": st.sampled_from(("before", "after")),
    "status": st.sampled_from((500, 502, 504)),
    "seconds": st.floats(0, 1000),
    "after": st.floats(0, 1000),
    "nth": st.integers(1, 9),
    "times": st.integers(1, 9),
}


@st.composite
def faults(draw):
    kind = draw(st.sampled_from(sorted(KEYS)))
    keys = draw(st.sets(st.sampled_from(KEYS[kind])))
    return Fault.model_validate({"kind": kind} | {key: draw(VALUES[key]) for key in keys})


@given(
    st.builds(
        Settings,
        scale=st.floats(0.001, 10),
        faults=st.lists(faults(), max_size=4).map(tuple),
        tags=st.sets(st.sampled_from(("VM.NoLimit", "Slice.Multisite"))).map(tuple),
        seed=st.integers(0, 2**31),
        token_hours=st.floats(0.01, 100),
        log=st.none() | st.just(Path("/somewhere/log")),
    )
)
def test_settings_survive_the_way_through_the_command_line(settings):
    parser = argparse.ArgumentParser()
    add_options(parser)
    assert from_arguments(parser.parse_args(settings.arguments())) == settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("earthquake", "there is no fault 'earthquake'; there are: insufficient-resources"),
        ("ssh-late:color=red", "has no key 'color'; its keys: node, site, seconds"),
        ("ssh-late:seconds=soon", "seconds: Input should be a valid number"),
        ("http:when=never", "when: Input should be 'before' or 'after'"),
        ("node-dies:node", "seconds"),
    ],
)
def test_fault_that_cannot_be_read_is_told_with_what_is_allowed(text, said):
    if text == "node-dies:node":
        assert Fault.parse(text).node == ""
        return
    with pytest.raises(UsageError, match=said):
        Fault.parse(text)


def test_fault_of_a_request_strikes_the_nth_and_as_often_as_it_says():
    waiting = Faults((Fault.parse("http:method=POST,path=/slices/creates,nth=2,times=2"),))
    struck = [waiting.for_request("http", "POST", "/slices/creates") is not None for _ in range(5)]
    assert struck == [False, True, True, False, False]


def test_requests_of_another_route_do_not_count():
    waiting = Faults((Fault.parse("http:method=POST,path=/slices/creates"),))
    assert waiting.for_request("http", "GET", "/slices/creates") is None
    assert waiting.for_request("http", "POST", "/slices/renew/1") is None
    assert waiting.for_request("http", "POST", "/slices/creates") is not None


def test_fault_of_a_node_strikes_that_node_once():
    waiting = Faults((Fault.parse("ssh-never:node=h1"), Fault.parse("node-dies:site=TACC,seconds=3")))
    assert waiting.for_node("ssh-never", node="h2", site="TACC") is None
    assert waiting.for_node("ssh-never", node="h1", site="TACC") is not None
    assert waiting.for_node("ssh-never", node="h1", site="TACC") is None
    dies = waiting.for_node("node-dies", node="h2", site="TACC")
    assert dies is not None
    assert dies.seconds == 3
