"""What the role asks a node: reasons in words, from what kernels and tools really say."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "playbooks" / "roles" / "bbr" / "files" / "fab_bbr_node.py"

spec = importlib.util.spec_from_file_location("fab_bbr_node", SCRIPT)
node = importlib.util.module_from_spec(spec)
spec.loader.exec_module(node)

REJECTED = "modprobe: ERROR: could not insert 'fab_bbr': Key was rejected by service"
UNSIGNED = "modprobe: ERROR: could not insert 'fab_bbr': Required key not available"
LOCKED = (
    "modprobe: ERROR: could not insert 'fab_bbr': Operation not permitted\n"
    "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7"
)
FORBIDDEN = "modprobe: ERROR: could not insert 'fab_bbr': Operation not permitted"
OTHER_KERNEL = (
    "modprobe: ERROR: could not insert 'fab_bbr': Exec format error\n"
    "fab_bbr: disagrees about version of symbol module_layout"
)
NOT_FOUND = "modprobe: FATAL: Module fab_bbr not found in directory /lib/modules/6.1.0-56-amd64"


def ask(*question):
    done = subprocess.run(
        (sys.executable, "-", *question),
        input=SCRIPT.read_text(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("words", [REJECTED, UNSIGNED, LOCKED])
def test_a_kernel_that_wants_signatures_is_recognised_and_the_remedy_is_named(words):
    reason = node.why_not_loaded(words, secure_boot=True, lockdown="integrity")
    assert "only signed modules (secure boot on, lockdown integrity)" in reason
    assert "mokutil --import" in reason
    assert words.splitlines()[0] in reason


def test_a_refusal_without_lockdown_is_no_question_of_signatures():
    reason = node.why_not_loaded(FORBIDDEN, secure_boot=False, lockdown="none")
    assert "signed" not in reason
    assert FORBIDDEN in reason


def test_a_module_for_another_kernel_is_recognised():
    reason = node.why_not_loaded(OTHER_KERNEL, secure_boot=None, lockdown=None)
    assert "headers of another kernel" in reason
    assert "reboot" in reason


def test_any_other_failure_is_told_in_its_own_words():
    assert NOT_FOUND in node.why_not_loaded(NOT_FOUND, secure_boot=None, lockdown=None)
    assert "no reason given" in node.why_not_loaded("\n", secure_boot=None, lockdown=None)


@pytest.mark.parametrize(
    ("loadable", "disabled", "word"),
    [(False, None, "without loadable modules"), (True, "1", "kernel.modules_disabled"), (True, "0", None)],
)
def test_a_kernel_that_takes_no_modules_says_why(loadable, disabled, word):
    reason = node.modules_refused(loadable=loadable, disabled=disabled)
    assert (reason is None) if word is None else (word in reason)


def test_a_socket_that_ss_cannot_look_into_is_no_proof_and_the_remedy_is_named():
    blind = "ESTAB 0 0 127.0.0.1:49272 127.0.0.1:50939 rto:0.2 cwnd:20 ssthresh:8 reordering:0"
    assert "modprobe tcp_diag" in node.why_not_shown("fab_bbr2", blind)


def test_a_socket_that_uses_another_algorithm_is_no_proof():
    other = (
        "ESTAB 0 0 127.0.0.1:1 127.0.0.1:2 cubic wscale:7,7 rto:208 bytes_sent:4000000 bytes_acked:4000001"
    )
    assert "does not show fab_bbr2" in node.why_not_shown("fab_bbr2", other)
    assert node.why_not_shown("cubic", other) is None


def test_the_survey_reads_this_kernel():
    status, said = ask("survey")
    assert status == 0
    assert said["offered"] == Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    assert (said["modules_refused"] is None) or not Path("/proc/modules").exists()
    assert (said["way"] is None) == ("fab_bbr2" not in said["offered"])


def test_a_flow_over_loopback_uses_what_it_asked_for():
    status, said = ask("verify", "reno")
    assert status == 0
    assert " reno " in said["sockets"]["reno"]
    assert "bytes_acked:4000001" in said["sockets"]["reno"], "all bytes, and the SYN, which counts as one"


def test_an_algorithm_that_is_not_there_is_refused_by_name():
    status, said = ask("verify", "no_such_cc")
    assert status == 1
    assert "no_such_cc" in said["refused"]
