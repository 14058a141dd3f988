"""The module fab_loopback_flow: a flow is a proof only if ss shows what it asked for."""

import pytest

BLIND = "ESTAB 0 0 127.0.0.1:49272 127.0.0.1:50939 rto:0.2 cwnd:20 ssthresh:8 reordering:0"
OTHER = "ESTAB 0 0 127.0.0.1:1 127.0.0.1:2 cubic wscale:7,7 rto:208 bytes_sent:4000000 bytes_acked:4000001"


def flow(machine, *names, **options):
    return machine.ask("fab_loopback_flow", congestion_controls=list(names), **options)


@pytest.mark.parametrize("check", [False, True])
def test_a_flow_uses_what_it_asked_for(this_machine, check):
    answer = flow(this_machine, "reno", check=check)
    assert answer["changed"] is False
    assert " reno " in answer["sockets"]["reno"]
    assert "bytes_acked:4000001" in answer["sockets"]["reno"], "all bytes, and the SYN, which counts as one"


def test_an_algorithm_that_is_not_there_is_refused_by_name(this_machine):
    assert "no_such_cc" in flow(this_machine, "reno", "no_such_cc")["msg"]


def test_a_socket_that_ss_cannot_look_into_is_no_proof_and_the_remedy_is_named(this_machine):
    fake(this_machine, f"echo '{BLIND}'")
    assert "modprobe tcp_diag" in flow(this_machine, "reno")["msg"]


def test_a_socket_that_uses_another_algorithm_is_no_proof(this_machine):
    fake(this_machine, f"echo '{OTHER}'")
    assert "does not show reno" in flow(this_machine, "reno")["msg"]


def test_a_broken_ss_is_told_in_its_own_words(this_machine):
    fake(this_machine, "echo 'Cannot open netlink socket' >&2; exit 1")
    assert "Cannot open netlink socket" in flow(this_machine, "reno")["msg"]


def test_it_must_be_told_what_to_send_with(this_machine):
    assert "congestion_controls" in this_machine.ask("fab_loopback_flow")["msg"]


def fake(machine, script):
    """An ss that says what it is told to."""
    ss = machine.tools / "ss"
    ss.write_text(f"#!/bin/sh\n{script}\n")
    ss.chmod(0o755)
