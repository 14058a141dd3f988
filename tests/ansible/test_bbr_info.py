"""What the module fab_bbr_info reads of a node."""

from pathlib import Path

import pytest

OURS = ("fab_bbr2", "fab_bbr3")


def built_in(node):
    node.write("sys/module/fab_bbr/parameters/source", "50\n")


def by_dkms(node):
    node.load(source="50")
    (node.root / "var/lib/dkms/fab_bbr").mkdir(parents=True)


def by_make(node):
    node.load(source="50")


def by_bpf(node):
    node.write("run/fab-bbr-bpf/source", "50\n")


@pytest.mark.parametrize(
    ("bring", "way"), [(built_in, "kernel"), (by_dkms, "dkms"), (by_make, "make"), (by_bpf, "bpf")]
)
def test_it_tells_the_way_that_brought_the_algorithms_and_their_source(node, bring, way):
    node.offer("reno", *OURS)
    bring(node)
    answer = node.ask("fab_bbr_info")
    assert (answer["way"], answer["source"], answer["changed"]) == (way, "50", False)


def test_algorithms_of_nobody_knows_where_have_no_source(node):
    node.offer("reno", *OURS)
    answer = node.ask("fab_bbr_info")
    assert (answer["way"], answer["source"]) == ("unknown", None)


def test_a_kernel_that_offers_one_of_them_only_has_no_way(node):
    node.offer("reno", "fab_bbr2")
    node.load(source="50")
    assert node.ask("fab_bbr_info")["way"] is None


def test_the_profile_of_bpf_programs_is_what_their_loader_says(node):
    node.offer("reno", *OURS)
    by_bpf(node)
    loader = node.write("usr/local/sbin/fab-bbr-bpf", "#!/bin/sh\necho draft01\n")
    loader.chmod(0o755)
    assert node.ask("fab_bbr_info")["profile"] == "draft01"


def test_a_loader_that_is_gone_leaves_the_profile_unknown(node):
    node.offer("reno", *OURS)
    by_bpf(node)
    assert node.ask("fab_bbr_info")["profile"] is None


def test_it_tells_versions_of_sources_and_googles_bbr(node):
    node.write("usr/src/fab_bbr-0.2.0/Kbuild", "")
    node.write("usr/src/fab_bbr-0.1.0/Kbuild", "")
    node.write("sys/module/tcp_bbr/version", "3\n")
    answer = node.ask("fab_bbr_info")
    assert answer["versions"] == ["0.1.0", "0.2.0"]
    assert (answer["bbr_module_version"], answer["bbr_is_module"]) == ("3", False)
    node.write("proc/modules", "tcp_bbr 20480 3 - Live 0x0\n")
    assert node.ask("fab_bbr_info")["bbr_is_module"] is True


def test_a_kernel_that_takes_no_modules_says_why(node):
    assert node.ask("fab_bbr_info")["modules_refused"] is None
    node.write("proc/sys/kernel/modules_disabled", "1\n")
    assert "kernel.modules_disabled" in node.ask("fab_bbr_info")["modules_refused"]
    (node.root / "proc/modules").unlink()
    assert "without loadable modules" in node.ask("fab_bbr_info")["modules_refused"]


def test_it_reads_this_kernel_in_check_mode_too(this_machine):
    answer = this_machine.ask("fab_bbr_info", check=True)
    for key, name in (("offered", "available"), ("allowed", "allowed")):
        assert answer[key] == Path(f"/proc/sys/net/ipv4/tcp_{name}_congestion_control").read_text().split()
