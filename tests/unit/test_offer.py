"""``fabbbr run`` without a guest image: it offers to build one where there is somebody to say yes."""

import os
import pty
import select
import subprocess
import sys
import time
import types

import pytest

from fabbbr import cli
from fabbbr.backends.allotted import cpus_at_once
from fabbbr.backends.guest.image import found
from fabbbr.backends.guest.kernel.build import expected_minutes
from fabbbr.commands import run
from fabbbr.errors import EnvironmentUnfitError

EXPERIMENT = """\
id: mine
title: Mine
slice: two_site
path: {rate: 10 Mbit/s, rtt: 20 ms}
flows: [{cca: cubic, duration: 1 s}]
repeat: 1
"""
REMEDY = "build it once with: fabbbr guest build"
WITHOUT_WHEEL = """
import sys
from fabbbr.backends.guest.image import found
from fabbbr.cli import main
found.WHEEL = "no_such_wheel"
sys.exit(main())
"""
COMMAND = [sys.executable, "-c", WITHOUT_WHEEL, "run", "mine.yaml"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where the user stands: an experiment, and an empty cache."""
    (tmp_path / "mine.yaml").write_text(EXPERIMENT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(found, "WHEEL", "no_such_wheel")
    return tmp_path


def at_a_terminal(answer):
    """Status of the command and what it showed, with ``answer`` typed once it asks."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(COMMAND[0], COMMAND)  # noqa: S606
    shown, answered, deadline = b"", False, time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # it ended
                break
        if b"[y/N]" in shown and not answered:
            os.write(terminal, answer)
            answered = True
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), " ".join(shown.decode().split())


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04"])
def test_at_a_terminal_it_says_how_long_a_build_takes_and_without_a_yes_builds_nothing(place, answer):
    status, shown = at_a_terminal(answer)
    assert f"about {expected_minutes(cpus_at_once())} minutes with" in shown
    assert "Build it now? [y/N]" in shown
    assert str(place / "cache") in shown
    assert status == 5
    assert REMEDY in shown
    assert not (place / "cache").exists()
    assert not (place / "runs").exists()


def test_where_nobody_can_be_asked_the_remedy_is_said_at_once(place):
    done = subprocess.run(COMMAND, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (5, "")
    assert REMEDY in done.stderr
    assert "Build it now" not in done.stderr


@pytest.fixture
def said_yes(place, monkeypatch):
    """What was done, of a user who says yes to everything, on a machine that can build."""
    done = []
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(run, "attended", lambda _: True)
    monkeypatch.setattr(run, "cannot_build", lambda: None)
    monkeypatch.setattr(run, "build_now", lambda *_: done.append("asked") or True)
    monkeypatch.setattr(run, "build", lambda *_, **__: done.append("built"))

    def carry_out(*_, **__):
        done.append("run")
        raise EnvironmentUnfitError

    monkeypatch.setattr(run, "carry_out", carry_out)
    return done


def test_a_yes_builds_the_image_before_anything_else(said_yes):
    assert cli.main(["run", "mine.yaml"]) == 5
    assert said_yes == ["asked", "built", "run"]


def test_a_mistake_in_the_file_is_named_before_minutes_of_building(said_yes, place):
    (place / "mine.yaml").write_text(EXPERIMENT.replace("20 ms", "20 parsecs"), encoding="utf-8")
    assert cli.main(["run", "mine.yaml"]) == 3
    assert said_yes == []


@pytest.mark.parametrize("more", [("--clock", "real"), ("--backend", "mininet")], ids=" ".join)
def test_what_needs_no_image_asks_for_none(said_yes, more):
    assert cli.main(["run", "mine.yaml", *more]) == 5
    assert said_yes == ["run"]


def test_a_plan_needs_no_image(said_yes):
    assert cli.main(["run", "mine.yaml", "--dry-run"]) == 0
    assert said_yes == []


def test_where_no_image_can_be_built_none_is_offered(said_yes, monkeypatch):
    monkeypatch.setattr(run, "cannot_build", lambda: "this machine is a toaster")
    assert cli.main(["run", "mine.yaml"]) == 5
    assert said_yes == ["run"]


KERNELS = EXPERIMENT.replace(
    "repeat: 1", "kernel: $kernel\nrepeat: 1\nvary: {kernel: [6.1, default, ./linux, 6.12]}"
)


@pytest.fixture
def of_kernels(said_yes, place, monkeypatch):
    """An experiment of four kernels, of which the image has one and nobody but the user knows another."""
    (place / "mine.yaml").write_text(KERNELS, encoding="utf-8")
    image = types.SimpleNamespace(kernel=types.SimpleNamespace(release="7.3.4"))
    monkeypatch.setattr(run, "found_image", lambda: image)
    monkeypatch.setattr(run, "build_kernels_now", lambda names, *_: said_yes.append(names) or True)
    monkeypatch.setattr(run, "build_kernel", lambda _, given: said_yes.append(given.source))
    return said_yes


def test_kernels_of_the_distribution_are_built_before_the_run(of_kernels):
    assert cli.main(["run", "mine.yaml"]) == 5
    assert of_kernels == [["6.1", "6.12"], "6.1", "6.12", "run"]


def test_only_kernels_of_the_chosen_cells_are(of_kernels):
    assert cli.main(["run", "mine.yaml", "--only", "kernel=default|6.12"]) == 5
    assert of_kernels == [["6.12"], "6.12", "run"]


def test_without_a_yes_no_kernel_is_built(of_kernels, monkeypatch):
    monkeypatch.setattr(run, "build_kernels_now", lambda *_: False)
    assert cli.main(["run", "mine.yaml"]) == 5
    assert of_kernels == ["run"]
