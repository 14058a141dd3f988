"""The module fab_bbr_kernel_module: it loads, replaces and unloads, or gives the kernel's reason."""

import pytest

REJECTED = "modprobe: ERROR: could not insert 'fab_bbr': Key was rejected by service"
UNSIGNED = "modprobe: ERROR: could not insert 'fab_bbr': Required key not available"
FORBIDDEN = "modprobe: ERROR: could not insert 'fab_bbr': Operation not permitted"
LOCKED = "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7"
NO_FORMAT = "modprobe: ERROR: could not insert 'fab_bbr': Exec format error"
OTHER_KERNEL = "fab_bbr: disagrees about version of symbol module_layout"
NOT_FOUND = "modprobe: FATAL: Module fab_bbr not found in directory /lib/modules/6.1.0-56-amd64"

PARAMETERS = "sys/module/fab_bbr/parameters"
INSTALLED = f"mkdir -p {PARAMETERS}; echo 50 >{PARAMETERS}/source"


@pytest.fixture
def node(node):
    """One where the build of source 50 is installed."""
    node.tool("modprobe", INSTALLED)
    node.tool("rmmod", "rm -r sys/module/fab_bbr; sed -i /fab_bbr/d proc/modules")
    return node


def refusal(node, **parameters):
    answer = node.ask("fab_bbr_kernel_module", **parameters)
    assert answer["failed"]
    return answer["msg"]


def test_what_is_installed_is_loaded(node):
    answer = node.ask("fab_bbr_kernel_module", source="50")
    assert (answer["changed"], answer["source"]) == (True, "50")
    assert node.called == ["modprobe fab_bbr"]


def test_what_is_loaded_is_left_alone(node):
    node.load(source="50")
    answer = node.ask("fab_bbr_kernel_module", source="50")
    assert (answer["changed"], answer["source"]) == (False, "50")
    assert node.called == []


def test_another_build_goes_first(node):
    node.load(source="49")
    assert node.ask("fab_bbr_kernel_module", source="50")["changed"] is True
    assert node.called == ["rmmod fab_bbr", "modprobe fab_bbr"]


def test_a_build_that_was_not_meant_is_refused(node):
    assert "loaded source 50, not the 51 just installed" in refusal(node, source="51")


def test_check_mode_says_so_and_does_nothing(node):
    node.load(source="49")
    assert node.ask("fab_bbr_kernel_module", check=True, source="50")["changed"] is True
    assert node.ask("fab_bbr_kernel_module", check=True, source="49")["changed"] is False
    assert node.ask("fab_bbr_kernel_module", check=True, state="absent")["changed"] is True
    assert node.called == []


def test_unloading_is_a_change_once(node):
    node.load(source="50")
    assert node.ask("fab_bbr_kernel_module", state="absent")["changed"] is True
    assert node.ask("fab_bbr_kernel_module", state="absent")["changed"] is False
    assert node.called == ["rmmod fab_bbr"]


@pytest.mark.parametrize("wanted", [{"state": "absent"}, {"source": "50"}])
@pytest.mark.parametrize("check", [False, True])
def test_the_default_of_new_connections_is_not_taken_away(node, wanted, check):
    node.load(source="49")
    node.write("proc/sys/net/ipv4/tcp_congestion_control", "fab_bbr2\n")
    assert "sysctl net.ipv4.tcp_congestion_control=cubic" in refusal(node, check=check, **wanted)
    assert node.called == []


def test_a_module_in_use_stays_and_the_remedy_is_named(node):
    node.load(source="50")
    node.tool("rmmod", 'echo "rmmod: ERROR: Module fab_bbr is in use" >&2; exit 1')
    reason = refusal(node, state="absent")
    assert "Module fab_bbr is in use" in reason
    assert "connections still use fab_bbr" in reason


def test_what_is_built_in_cannot_be_taken_out(node):
    node.write(f"{PARAMETERS}/source", "49\n")
    assert "built into this kernel" in refusal(node, state="absent")
    assert "built into this kernel" in refusal(node, source="50")
    assert node.called == []


def test_a_node_without_modprobe_says_so(node, monkeypatch):
    (node.tools / "modprobe").unlink()
    monkeypatch.setenv("PATH", "/nowhere")
    assert "modprobe could not be run" in refusal(node, source="50")


@pytest.mark.parametrize(
    "parameters", [{}, {"state": "present"}, {"state": "loaded"}, {"source": "50", "digest": "50"}]
)
def test_what_is_not_in_the_argument_spec_is_refused(node, parameters):
    assert refusal(node, **parameters)
    assert node.called == []


@pytest.mark.parametrize(
    ("words", "log"), [(REJECTED, ""), (UNSIGNED, ""), (FORBIDDEN, f"[1.0] {LOCKED}"), (FORBIDDEN, "")]
)
def test_a_kernel_that_wants_signatures_is_recognised_and_the_remedy_is_named(node, words, log):
    node.tool("modprobe", f'echo "{words}" >&2; exit 1')
    node.write("log", log)
    node.write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    node.write("sys/firmware/efi/efivars/SecureBoot-8be4df61", "\x06\0\0\0\x01")
    reason = refusal(node, source="50")
    assert "only signed modules (secure boot on, lockdown integrity)" in reason
    assert "mokutil --import" in reason
    assert words in reason


def test_lockdown_that_only_the_kernels_log_tells_of_is_recognised(node):
    node.tool("modprobe", f'echo "{FORBIDDEN}" >&2; exit 1')
    node.write("log", f"[1.0] {LOCKED}\n")
    assert "only signed modules (secure boot unknown, lockdown unknown)" in refusal(node, source="50")


def test_a_refusal_without_lockdown_is_no_question_of_signatures(node):
    node.tool("modprobe", f'echo "{FORBIDDEN}" >&2; exit 1')
    node.write("sys/kernel/security/lockdown", "[none] integrity confidentiality\n")
    node.write("sys/firmware/efi/efivars/SecureBoot-8be4df61", "\x06\0\0\0\0")
    reason = refusal(node, source="50")
    assert "signed" not in reason
    assert FORBIDDEN in reason


def test_a_module_for_another_kernel_is_recognised(node):
    node.tool("modprobe", f'echo "{NO_FORMAT}" >&2; exit 1')
    node.write("log", f"[1.0] {OTHER_KERNEL}\n")
    reason = refusal(node, source="50")
    assert "headers of another kernel" in reason
    assert "reboot" in reason


def test_any_other_failure_is_told_in_its_own_words(node):
    node.tool("modprobe", f'echo "{NOT_FOUND}" >&2; exit 1')
    assert NOT_FOUND in refusal(node, source="50")
    node.tool("modprobe", "exit 1")
    assert "no reason given" in refusal(node, source="50")


def test_tools_speak_english_whatever_the_locale_of_the_node(node, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")  # stands for any that is installed: Ansible replaces others
    node.tool("modprobe", 'echo "in $LC_ALL" >&2; exit 1')
    assert refusal(node, source="50") == "modprobe fab_bbr failed: in C"
