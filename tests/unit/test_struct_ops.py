"""A BPF program as it is: what the machine lacks for it, and what is told of one that it does not take."""

import subprocess
from pathlib import Path

import pytest

from fabbbr.backends import struct_ops
from fabbbr.backends.base import OwnControl
from fabbbr.backends.struct_ops import Programs, refusal
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.model import Module
from fabbbr.sources import Sources

PROGRAM = Sources(place=Path("mine.bpf.c"), contents={"mine.bpf.c": b'int absent();\n.name = "mine"'})
MODULE = Sources(place=Path("tcp_mine.c"), contents={"tcp_mine.c": b""})
VERIFIER = """\
libbpf: prog 'mine_init': BPF program load failed: Permission denied
libbpf: prog 'mine_init': -- BEGIN PROG LOAD LOG --
; void BPF_PROG(mine_init, struct sock *sk) @ mine.bpf.c:42
0: (79) r1 = *(u64 *)(r1 +0)
; ((struct tcp_sock *)sk)->snd_nxt = 3; @ mine.bpf.c:44
4: (63) *(u32 *)(r1 +1668) = r2
no write support to tcp_sock at off 1668
processed 5 insns (limit 1000000) max_states_per_insn 0
-- END PROG LOAD LOG --
libbpf: prog 'mine_init': failed to load: -13
"""


def control(sources=PROGRAM):
    return OwnControl(
        sources=sources,
        uses=(Module(sha256=sources.sha256, kernel_name="mine", form="bpf"),),
        senders=("h1",),
    )


class Machine:
    """Answers every command with one status and one output."""

    folder = "/"

    def __init__(self, status, stdout=b""):
        self.status, self.stdout, self.asked = status, stdout, []

    def run(self, argv, *, stdin=b"", timeout_s=0):
        self.asked.append(argv)
        return subprocess.CompletedProcess(argv, self.status, self.stdout, b"")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (71, "the machine is not run as root, .*; use sudo"),
        (72, "the machine has no bpftool; apt-get install bpftool"),
        (73, "without BTF .*; boot one with it, or leave --backend out"),
        (1, "cannot say what it has"),
    ],
)
def test_what_a_machine_lacks_for_bpf_is_told_with_the_remedy(status, said):
    with pytest.raises(EnvironmentUnfitError, match=said):
        Programs().add(control(), Machine(status), "this host's kernel", lambda _: None)


def test_without_clang_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(struct_ops, "_CLANGS", ("no-such-clang",))
    with pytest.raises(EnvironmentUnfitError, match="apt-get install clang libbpf-dev"):
        Programs().add(control(), Machine(0, b"reno cubic\n"), "this host's kernel", lambda _: None)


def test_nothing_registered_leaves_nothing_to_take_away():
    programs = Programs()
    programs.close()
    assert programs.options([PROGRAM.sha256]) == {}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (VERIFIER, "mine.bpf.c:44: the verifier of here refuses it: no write support to tcp"),
        ("libbpf: extern (func ksym) 'absent': not found", "mine.bpf.c:1: here gives BPF programs no a"),
        ("Error: can't register struct_ops mine: Invalid", "mine.bpf.c:2: here does not take mine: E"),
        ("libbpf: struct_ops init_kern x: Cannot find member name", "mine.bpf.c:2: here has no operation"),
        ("", "mine.bpf.c:2: here does not take mine: bpftool says nothing; see that it has ssthresh"),
    ],
)  # fmt: skip
def test_a_refusal_has_place_reason_and_remedy(said, told):
    assert refusal(said, PROGRAM, "mine", "here").startswith(told)
