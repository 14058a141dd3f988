"""What a guest finds below its runtime folder."""

from pathlib import Path

from fabbbr.backends.guest.machine import _AGENT, Machine, _lay_out


def test_the_agent_comes_without_byte_code(tmp_path):
    """With it a run in a used checkout differed from that in a fresh one, from the first nanosecond on."""
    import fabbbr.agent.lab  # noqa: F401 - Python leaves its byte code beside it

    machine = Machine(kernel=Path("linux"), seccomp=True, seed=1, memory_bytes=1 << 30, clock_limit_s=1.0)
    (tmp_path / "runtime").mkdir()
    _lay_out(tmp_path / "runtime", machine, tmp_path)
    copied = {path.name for path in (tmp_path / "runtime" / "agent").iterdir()}
    assert copied == {path.name for path in _AGENT.iterdir()} - {"__pycache__"}
    assert {"lab.py", "timeline.py"} <= copied
