"""The module fab_bbr_profile: what it sets is read back."""

import pytest

PROFILE = "sys/module/fab_bbr/parameters/profile"


@pytest.fixture
def as_module(node):
    """A node that carries the algorithms as a module."""
    node.offer("reno", "fab_bbr2", "fab_bbr3")
    node.load(source="50", profile="v2alpha")
    return node


@pytest.fixture
def as_bpf(node):
    """A node that carries them as BPF programs."""
    node.offer("reno", "fab_bbr2", "fab_bbr3")
    node.write("run/fab-bbr-bpf/source", "50\n")
    node.write("profile", "v2alpha\n")
    return node


def bpf_loader(node, script):
    loader = node.tool("fab-bbr-bpf", script)
    (node.root / "usr/local/sbin").mkdir(parents=True)
    loader.rename(node.root / "usr/local/sbin/fab-bbr-bpf")


def test_another_profile_is_a_change_once(as_module):
    for changed in (True, False):
        answer = as_module.ask("fab_bbr_profile", profile="draft01")
        assert (answer["changed"], answer["profile"]) == (changed, "draft01")
    assert (as_module.root / PROFILE).read_text() == "draft01"


def test_check_mode_says_so_and_does_nothing(as_module):
    assert as_module.ask("fab_bbr_profile", check=True, profile="draft01")["changed"] is True
    assert as_module.ask("fab_bbr_profile", check=True, profile="v2alpha")["changed"] is False
    assert (as_module.root / PROFILE).read_text() == "v2alpha\n"


def test_check_mode_before_the_first_run_expects_that_there_will_be_a_profile(node):
    assert node.ask("fab_bbr_profile", check=True, profile="v2alpha")["changed"] is True


def test_a_node_without_the_algorithms_refuses(node):
    answer = node.ask("fab_bbr_profile", profile="v2alpha")
    assert "does not offer fab_bbr2" in answer["msg"]


def test_a_parameter_that_cannot_be_written_is_named(as_module):
    (as_module.root / PROFILE).unlink()
    (as_module.root / PROFILE).mkdir()
    reason = as_module.ask("fab_bbr_profile", profile="draft01")["msg"]
    assert "instead of draft01" in reason
    assert PROFILE in reason


def test_the_loader_of_bpf_programs_sets_theirs(as_bpf):
    bpf_loader(as_bpf, 'test $# = 1 || echo "$2" >profile; cat profile')
    assert as_bpf.ask("fab_bbr_profile", profile="draft01")["changed"] is True
    assert as_bpf.ask("fab_bbr_profile", profile="draft01")["changed"] is False
    assert (as_bpf.root / "profile").read_text() == "draft01\n"


def test_what_the_loader_says_against_it_is_the_reason(as_bpf):
    bpf_loader(
        as_bpf, 'cat profile; test $# = 1 || { printf "libbpf: a\\nmap is frozen\\n\\n" >&2; exit 1; }'
    )
    reason = as_bpf.ask("fab_bbr_profile", profile="draft01")["msg"]
    assert reason == "the profile of fab_bbr2 stays v2alpha instead of draft01: map is frozen"


@pytest.mark.parametrize("parameters", [{}, {"profile": "v3"}])
def test_what_is_not_in_the_argument_spec_is_refused(as_module, parameters):
    assert as_module.ask("fab_bbr_profile", **parameters)["failed"]
