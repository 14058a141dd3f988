"""The command line, and small runs of two papers, made once for each file that draws or tells of them."""

import pytest
import synthetic

from fabbbr import cli


@pytest.fixture(scope="module")
def f10(tmp_path_factory):
    return synthetic.run_set(synthetic.SMALL_F10, tmp_path_factory.mktemp("runs") / "f10", period_s=1.0)


@pytest.fixture(scope="module")
def e1(tmp_path_factory):
    return synthetic.run_set(synthetic.SMALL_E1, tmp_path_factory.mktemp("runs") / "e1", period_s=1.0)


@pytest.fixture
def fabbbr(capsys, monkeypatch):
    """Run a command in this process: its exit status, what it printed and what it complained."""
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def call(*words):
        try:
            status = cli.main([str(word) for word in words])
        except SystemExit as left:
            status = left.code
        told = capsys.readouterr()
        return status, told.out, told.err

    return call
