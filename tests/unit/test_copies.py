"""A congestion control copied to be changed: what is written, and what is refused."""

import subprocess
from pathlib import Path

import pytest

from fabbbr.backends.guest.module import copies
from fabbbr.errors import UsageError
from fabbbr.model import Module
from fabbbr.plan.opening import open_plan
from fabbbr.sources import read
from fabbbr.spec.experiment import BBR_PROFILES, CCAS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
KERNELS = """\
#include <net/tcp.h>
#include "tcp_pair.h"
static struct tcp_congestion_ops pair = {
	.init	= pair_init,
	.name	= "cubic",
};
EXPORT_SYMBOL_GPL(pair_init);
static struct tcp_congestion_ops fallback = { .name = "cubic-reno" };
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def tree(tmp_path):
    folder = tmp_path / "tree" / "net" / "ipv4"
    folder.mkdir(parents=True)
    (folder / "tcp_cubic.c").write_text(KERNELS)
    (folder / "tcp_pair.h").write_text("int pair_init(void);\n")
    return tmp_path / "tree"


@pytest.mark.parametrize(
    ("cca", "profile"), [(cca, profile) for cca, known in BBR_PROFILES.items() for profile in known]
)
def test_a_copy_of_ours_registers_its_own_name_alone_with_the_constants_of_the_profile(
    fabbbr, tmp_path, cca, profile
):
    status, out, err = fabbbr("cca", "copy", cca, "--profile", profile, "--to", "tcp_mine")
    assert (status, out) == (0, "tcp_mine\n")
    assert "--cca mine=./tcp_mine" in err
    sources = read(tmp_path / "tcp_mine")
    assert [named.name for named in sources.names] == ["mine"]
    constant = "FAB_PROFILE_" + {"v1cap3": "V1_CAP3"}.get(profile, profile.upper())
    shim = sources.contents["fab_bbr_module.c"].decode()
    assert shim.count("fab_open(sk, ") == 1
    assert f"fab_open(sk, {constant});" in shim
    assert constant in sources.contents["fab_bbr_core.h"].decode()
    assert b"obj-m := tcp_mine.o\ntcp_mine-y := fab_bbr_module.o\n" in sources.contents["Kbuild"]


def test_a_copy_of_the_kernels_has_another_name_the_headers_beside_it_and_exports_nothing(tmp_path):
    copies.copy_kernels(tmp_path, "cubic", "mine", lambda: tree(tmp_path))
    text = (tmp_path / "tcp_mine.c").read_text()
    assert text == KERNELS.replace('"cubic"', '"mine"').replace("EXPORT_SYMBOL_GPL(pair_init);\n", "")
    assert (tmp_path / "tcp_pair.h").exists()


def test_of_several_names_that_a_module_registers_the_one_that_the_experiment_calls_it_by_is_meant(tmp_path):
    (tmp_path / "tcp_mine").mkdir()
    copies.copy_kernels(tmp_path / "tcp_mine", "cubic", "mine", lambda: tree(tmp_path))
    (tmp_path / "own.yaml").write_text(
        "id: own\ntitle: Own\nslice: two_site\npath: {rate: 10 Mbit/s, rtt: 20 ms}\n"
        "flows: [{cca: $cca, duration: 1 s}]\nvary: {cca: [mine]}\nccas: {mine: {module: ./tcp_mine}}\n"
    )
    module = open_plan(str(tmp_path / "own.yaml"), seed=1).cells[0].flows[0].module
    assert isinstance(module, Module)
    assert module.kernel_name == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cubik",), "no congestion control 'cubik'; did you mean 'cubic'?"),
        (("reno",), "reno is part of every kernel and no file of its own"),
        (("bbr3", "--profile", "v2alpha"), "--profile v2alpha: bbr3 has v3"),
        (("cubic", "--profile", "v3"), "--profile v3: cubic has none: it is the kernel's own"),
        (("bbr3", "--to", "tcp_cubic"), "'cubic' is what a congestion control of the kernel is called"),
        (("bbr3", "--to", "tcp_a_name_of_sixteen"), "at most 15 characters"),
        (("bbr3", "--to", "."), "name a folder as tcp_mine"),
        (("bbr3", "--to", "there"), "there is there already; name another folder with --to"),
        (("bbr3", "--to", "/proc/none/tcp_mine"), "cannot write /proc/none/tcp_mine"),
    ],
)
def test_what_cannot_be_copied_is_refused_and_leaves_nothing(fabbbr, tmp_path, words, said):
    (tmp_path / "there").mkdir()
    status, out, err = fabbbr("cca", "copy", *words)
    assert (status, out) == (2, "")
    assert said in err
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_every_congestion_control_is_listed_with_whose_there_are(fabbbr):
    status, out, _ = fabbbr("cca", "list")
    assert status == 0
    assert all(cca in out for cca in CCAS)
    assert copies.profile_of("bbr1", None) is None
    assert copies.profile_of("bbr3", None) == "v3"
    with pytest.raises(UsageError):
        copies.profile_of("bbr4", None)


def test_the_change_of_the_working_group_fits_a_copy_of_today(fabbbr, tmp_path):
    fabbbr("cca", "copy", "bbr3", "--to", "tcp_bbr3_min_rtt")
    patch = (EXAMPLES / "bbr3_min_rtt.patch").read_bytes()
    done = subprocess.run(
        ("patch", "-p1", "--fuzz=0", "-d", "tcp_bbr3_min_rtt"), input=patch, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout
    core = (tmp_path / "tcp_bbr3_min_rtt" / "fab_bbr_core.c").read_text()
    assert "probe_rtt_min_" not in core
