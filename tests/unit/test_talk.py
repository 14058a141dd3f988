"""A program that is asked: each answer belongs to its question, and why there is none is said."""

import json
import time

import pytest

from fabbbr.backends.channel import ChannelError, CommandChannel
from fabbbr.backends.machine import archive, python
from fabbbr.backends.talk import HungUpError, talk_with

LIMIT_S = 60.0


def program(script):
    return talk_with(CommandChannel(("env",), "/nowhere"), ("sh", "-c", script))


@pytest.fixture
def folder(tmp_path):
    """The agent's program for a part's folder, which is ``tmp_path / "part"``."""
    (tmp_path / "agent.zip").write_bytes(archive())
    (tmp_path / "part").mkdir()
    words = (*python(str(tmp_path / "agent.zip"), "agent.folder"), str(tmp_path / "part"))
    with talk_with(CommandChannel(("env",), "/nowhere"), words) as talk:
        yield lambda **question: talk.ask(question, LIMIT_S)


def test_what_is_written_is_read_and_what_is_missing_is_left_out(folder, tmp_path):
    line = 'two words: \N{GREEK SMALL LETTER MU}, \\ and "'
    assert folder(write="go.flows", line=line) == {}
    assert (tmp_path / "part" / "go.flows").read_text() == line + "\n"
    assert folder(read=["go.flows", "abort"]) == {"lines": {"go.flows": line}}


def test_the_clock_is_read_while_it_is_asked(folder):
    before = time.monotonic()
    assert before <= folder(clock=True)["clock_s"] <= time.monotonic()


def test_what_cannot_be_written_is_said_and_the_next_question_is_answered(folder, tmp_path):
    (tmp_path / "part").rmdir()
    assert "No such file" in folder(write="go.flows", line="0")["error"]
    assert folder(read=["go.flows"]) == {"lines": {}}


def test_who_has_ended_is_named_with_his_last_words():
    with (
        program("read line; echo 'sudo: a password is required' >&2") as talk,
        pytest.raises(HungUpError, match="a password is required"),
    ):
        talk.ask({}, LIMIT_S)


def test_who_has_ended_before_the_question_is_no_broken_pipe():
    with program("exit 3") as talk:
        time.sleep(0.2)
        with pytest.raises(HungUpError, match="the connection was lost"):
            talk.ask({"line": "x" * 200_000}, LIMIT_S)


@pytest.mark.parametrize("said", ["sh: python3: not found", "[1, 2]", "7"])
def test_what_is_no_answer_is_quoted(said):
    with (
        program(f"read line; echo '{said}'; read line") as talk,
        pytest.raises(ChannelError, match="where it answers") as raised,
    ):
        talk.ask({}, LIMIT_S)
    assert said in str(raised.value)


def test_a_time_limit_holds():
    with program("read line; read line") as talk, pytest.raises(ChannelError, match="no answer in time"):
        talk.ask({}, 0.1)


def test_after_a_question_that_was_given_up_no_answer_is_taken_for_that_to_the_next(tmp_path):
    given_up, answered = tmp_path / "given up", tmp_path / "answered"
    late = f"until [ -e '{given_up}' ]; do sleep 0.01; done; echo '{{\"n\": 1}}'; touch '{answered}'"
    with program(f"read one; {late}; read another; read end") as talk:
        with pytest.raises(ChannelError, match="no answer in time"):
            talk.ask({}, 0.1)
        given_up.touch()
        while not answered.exists():
            time.sleep(0.01)
        with pytest.raises(HungUpError, match="given up"):
            talk.ask({}, LIMIT_S)


def test_answers_in_pieces_and_two_at_once_are_each_a_line():
    first, second = json.dumps({"n": 1}), json.dumps({"n": 2})
    pieces = f"printf '%s' '{first[:3]}'; sleep 0.1; printf '%s\\n%s\\n' '{first[3:]}' '{second}'"
    script = f"read one; {pieces}; read another; read end"
    with program(script) as talk:
        assert [talk.ask({}, LIMIT_S), talk.ask({}, LIMIT_S)] == [{"n": 1}, {"n": 2}]
