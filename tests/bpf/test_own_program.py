"""A BPF program of the user's own as it is, in the running kernel: it carries a flow, and then it is gone."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from bpf.machine import number_in, offered, wait_until
from places import GUEST

from fabbbr import sources
from fabbbr.backends import mininet, struct_ops
from fabbbr.backends.base import OwnControl
from fabbbr.backends.channel import CommandChannel, NamespaceChannel
from fabbbr.backends.standing import StandingMachines
from fabbbr.certify.controls import checks, identified
from fabbbr.certify.evidence import Answer
from fabbbr.errors import ModuleUnfitError
from fabbbr.job.build import prepare
from fabbbr.model import Module
from fabbbr.plan.opening import open_plan

pytestmark = [pytest.mark.bpf, pytest.mark.xdist_group("bpf")]
ROOT = Path(__file__).resolve().parents[2]
AIMD = ROOT / "examples" / "aimd.bpf.c"
NAME = "aimd_bpf"
HERE = CommandChannel((), "/")
RECORDS = Path("/run/fab_loaded")


def control(place=AIMD, name=NAME, **how):
    found = sources.read(place)
    return OwnControl(
        sources=found,
        uses=(Module(sha256=found.sha256, kernel_name=name, form="bpf", **how),),
        senders=("h1",),
    )


@pytest.fixture
def programs():
    """Whatever a test registers is taken away."""
    assert NAME not in offered(), f"this machine offers {NAME} already: unregister it before these tests"
    made = struct_ops.Programs()
    yield made
    made.close()
    assert NAME not in offered()


def add(programs, own, told=None):
    programs.add(own, HERE, "this host's kernel", (told if told is not None else []).append)


def agent(*words):
    """What the agent says of it, on a node."""
    argv = [sys.executable, "-S", "-m", "agent.loading", *words]
    return subprocess.run(argv, cwd=ROOT / "fabbbr", capture_output=True, text=True, check=False, timeout=20)


def test_a_program_carries_a_flow_and_is_gone_when_the_run_is_over(programs, network):
    told = []
    add(programs, control(), told)
    assert told == [f"registered {NAME} of {AIMD} in this host's kernel: a BPF program, run as it is"]
    with network.flow(NAME, duration_s=5):
        wait_until(lambda: number_in(network.socket() or "", "bytes_acked") > 1_000_000, limit_s=20)
        assert f" {NAME} " in network.socket()
    programs.close()
    assert NAME not in offered()
    assert not list(RECORDS.glob(f"{control().sources.sha256}.*"))


def test_the_agent_finds_it_loaded_and_the_provenance_says_as_bpf(programs, tmp_path):
    own = control()
    add(programs, own)
    digest = own.sources.sha256
    loaded = agent("load", digest, NAME)
    assert loaded.returncode == 0, loaded.stderr
    assert json.loads(loaded.stdout)["form"] == "bpf"
    file = tmp_path / "own.yaml"
    file.write_text(
        "id: own\ntitle: Own\nslice: two_site\npath: {rate: 10 Mbit/s, rtt: 20 ms}\n"
        f"flows: [{{cca: {{module: {AIMD}}}, duration: 2 s}}]\n"
    )
    prepared = prepare(open_plan(str(file), seed=1).cells[0], GUEST)
    (asked,) = (one for one in prepared.job.readback if one.name.startswith("module."))
    shown = agent(*asked.command.argv[-3:])
    said = {"exit": shown.returncode, "stdout": shown.stdout, "stderr": shown.stderr}
    readback = {asked.name: Answer(argv=asked.command.argv, node=asked.command.node, **said)}
    (found,) = identified(prepared, readback)
    assert (found.implementation, found.form, found.source) == ("BPF program aimd.bpf.c", "bpf", digest[:16])
    (check,) = checks(prepared.expected.controls, readback)
    assert check.passed
    assert check.measured == f"source {digest[:16]}, as BPF"
    assert programs.options([digest])["modules"]["aimd.bpf.c"]["source_sha256"] == digest


def test_the_machines_of_a_slice_get_it_where_their_senders_are(network):
    machines = StandingMachines(
        GUEST, {GUEST.machine_of("h1"): NamespaceChannel(network.sender, "/")}, "fabbbr slice show x"
    )
    machines.take_in([control(), control()], lambda _: None)
    assert NAME in offered()
    machines.close()
    assert NAME not in offered()


def test_ctrl_c_takes_it_away_from_the_host_of_mininet(monkeypatch):
    monkeypatch.setattr(mininet, "lacks", list)  # a kernel without netem takes programs all the same
    monkeypatch.setattr(mininet, "tool_versions", dict)
    with pytest.raises(KeyboardInterrupt):
        _interrupted()
    assert NAME not in offered()


def _interrupted():
    with closing(mininet.MininetBackend()) as place:
        place.take_in([control()], lambda _: None)
        assert NAME in offered()
        raise KeyboardInterrupt


def test_what_a_killed_run_left_is_taken_away_first(programs):
    left = struct_ops.Programs()
    add(left, control())
    record = RECORDS / f"{control().sources.sha256}.json"
    dead = subprocess.Popen(["true"])
    dead.wait()
    record.write_text(json.dumps(json.loads(record.read_text()) | {"runner": dead.pid}) + "\n")
    add(programs, control())
    assert NAME in offered()


def test_a_name_that_the_kernel_has_is_refused(programs, tmp_path):
    (tmp_path / "reno.bpf.c").write_text(AIMD.read_text().replace(f'"{NAME}"', '"reno"'))
    with pytest.raises(ModuleUnfitError, match="offers a congestion control 'reno' already"):
        add(programs, control(tmp_path / "reno.bpf.c", "reno"))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ("((struct tcp_sock *)sk)->snd_nxt = 3;", "the verifier of this host's kernel refuses it: no write"),
        ("none_of_bpf = sk;", "does not compile as BPF: use of undeclared identifier 'none_of_bpf'"),
        ("none_of_bpf(sk);", "this host's kernel gives BPF programs no none_of_bpf"),
    ],
)  # fmt: skip
def test_what_the_kernel_or_the_compiler_refuses_is_told_with_its_line(programs, tmp_path, new, said):
    code = AIMD.read_text().replace("aimd_of(sk)->credit = 0;", new)
    (tmp_path / "bad.bpf.c").write_text(code)
    line = (tmp_path / "bad.bpf.c").read_text().partition(new)[0].count("\n") + 1
    with pytest.raises(ModuleUnfitError, match=rf"bad\.bpf\.c:{line}: {said}"):
        add(programs, control(tmp_path / "bad.bpf.c"))


def test_a_program_that_lacks_an_operation_is_refused(programs, tmp_path):
    code = AIMD.read_text().replace("\t.ssthresh	= (void *)aimd_ssthresh,\n", "")
    code = code.replace(
        'SEC("struct_ops")\n__u32 BPF_PROG(aimd_ssthresh, struct sock *sk)', "static int f(void *sk)"
    )
    (tmp_path / "bad.bpf.c").write_text(code)
    with pytest.raises(ModuleUnfitError, match=rf"does not take {NAME}: .*see that it has ssthresh"):
        add(programs, control(tmp_path / "bad.bpf.c"))


def test_parameters_are_for_the_guest(programs):
    with pytest.raises(ModuleUnfitError, match="parameter beta: a BPF program that runs as it is has none"):
        add(programs, control(params={"beta": "717"}))
