"""What the agent leaves in a guest, or something else in its place."""

import json

import pytest

from fabbbr.backends.agent import read_outcome
from fabbbr.backends.base import heartbeat_s
from fabbbr.errors import BackendError

GOOD = {"ok": True, "elapsed_s": 2.5}
BAD = [
    b"", b"[]", b"{}", b"5", b"\xff", b"null", b'{"ok": true}', b'{"ok": "yes", "elapsed_s": 1}',
    b'{"ok": true, "elapsed_s": "1"}', b'{"ok": true, "elapsed_s": NaN}',
]  # fmt: skip


def test_the_seconds_of_a_job_that_was_carried_out_are_told(tmp_path):
    (tmp_path / "outcome.json").write_text(json.dumps(GOOD), encoding="utf-8")
    assert read_outcome(tmp_path) == 2.5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", [*BAD, None])
def test_an_outcome_that_is_none_is_an_error(tmp_path, text):
    if text is not None:
        (tmp_path / "outcome.json").write_bytes(text)
    with pytest.raises(BackendError, match="the agent left no"):
        read_outcome(tmp_path)


@pytest.mark.parametrize(("text", "seconds"), [(b"1.500", 1.5), (b"", None), (b"\xff", None), (b"x", None)])
def test_a_heartbeat_that_cannot_be_read_is_none(tmp_path, text, seconds):
    (tmp_path / "heartbeat").write_bytes(text)
    assert heartbeat_s(tmp_path) == seconds
