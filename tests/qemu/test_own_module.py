"""A kernel module of one's own in a distribution's own kernel: what it asks for, what runs, what is left.

The fixtures are the days in a machine's life, each going on from the one before: nothing there, the compiler,
the headers too, the module built, its flows, the end.
"""

import pytest
from qemu.observe import complaints, offered, sockets
from qemu.own import AIMD, brought, control, loaded

from fabbbr.backends.base import OwnControl
from fabbbr.backends.kernel_modules import Modules
from fabbbr.errors import EnvironmentUnfitError, ModuleUnfitError
from fabbbr.model import Module
from fabbbr.sources import read

INSTALL = "sudo apt-get update -q && sudo apt-get install -q -y --no-install-recommends"
MINUTES = 900


@pytest.fixture(scope="module")
def ground(machine, channel):
    """What is said without a compiler, then without headers; then it has both."""
    said = []
    for package in ("gcc make", "linux-headers-$(uname -r)"):
        with pytest.raises(EnvironmentUnfitError) as refused:
            Modules().add(control(), channel, "this machine", print)
        said.append(str(refused.value))
        done = machine.run(f"{INSTALL} {package}", timeout_s=MINUTES)
        assert done.returncode == 0, done.stderr
    return said


@pytest.fixture(scope="module")
def built(channel, ground):
    return brought(channel)


@pytest.fixture(scope="module")
def flows(machine, channel, built):
    """Each cell has its own parameters: what the agent said of them, and what ss said of a flow."""
    modules, _, _ = built
    seen = {}
    for beta in ("512", "922"):
        seen[beta] = loaded(machine, channel, beta), sockets(machine, "aimd")["aimd"]
        modules.unload()
        assert "aimd" not in offered(machine)
    return seen


@pytest.fixture(scope="module")
def ended(machine, built, flows):
    modules, _, _ = built
    modules.close()
    return machine.says("sudo ls -A /run/fab_loaded; lsmod")


def test_what_the_machine_lacks_is_said_with_the_remedy(ground):
    without_compiler, without_headers = ground
    assert "has no compiler; apt-get install build-essential there" in without_compiler
    assert "apt-get install linux-headers-$(uname -r) there" in without_headers


def test_it_is_built_for_the_kernel_that_runs(machine, built):
    _, (told,), made = built
    assert f"built tcp_aimd of {AIMD} for Linux {machine.says('uname -r')} by make and loaded it once" in told
    assert made["source_sha256"] == control().sources.sha256
    assert "gcc" in made["compiler"]


def test_each_cell_has_its_parameters_and_its_flow(built, flows):
    _, _, made = built
    for beta, (shown, flow) in flows.items():
        assert shown["parameters"] == {"beta": beta}
        assert shown["file_sha256"] == made["sha256"]
        assert " aimd " in f" {flow} "


def test_a_source_that_does_not_build_is_refused_with_its_line(machine, channel, flows, tmp_path):
    broken = tmp_path / "tcp_broken.c"
    text = (AIMD / "tcp_aimd.c").read_text(encoding="utf-8")
    broken.write_text(text.replace("tcp_in_slow_start(tp)", "tcp_in_slow_starts(tp)"), encoding="utf-8")
    sources = read(broken)
    use = Module(sha256=sources.sha256, kernel_name="aimd", params={})
    with pytest.raises(ModuleUnfitError, match=r"tcp_broken\.c:\d+: .*tcp_in_slow_starts") as refused:
        Modules().add(OwnControl(sources=sources, uses=(use,)), channel, "this machine", print)
    assert machine.says("uname -r") in str(refused.value)


def test_nothing_is_left_of_it(machine, ended):
    assert "aimd" not in ended
    assert "aimd" not in offered(machine)


def test_the_kernel_complained_about_nothing(machine, ended):
    assert complaints(machine) == []
