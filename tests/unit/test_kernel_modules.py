"""A module of one's own in the kernel of a machine, without a machine: what is asked, and what it answers."""

import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from fabbbr.backends import kernel_modules
from fabbbr.backends.base import OwnControl
from fabbbr.errors import EnvironmentUnfitError, ModuleUnfitError
from fabbbr.model import Module
from fabbbr.sources import Sources

SOURCE = """\
static struct tcp_congestion_ops ops = {
	.name = "mine",
};
int start(void) { return tcp_register_congestion_control(&ops); }
"""
SOURCES = Sources(place=Path("tcp_mine.c"), contents={"tcp_mine.c": SOURCE.encode()})
STAGED = "built ./tcp_mine.ko\nsha256 {sha}\ncompiler gcc 12\nparameter beta:int\n"
SCRIPTS = {
    getattr(kernel_modules, name): name
    for name in (
        "_GROUND",
        "_BUILD",
        "_BUILD_BY_DKMS",
        "_STAGE",
        "_TRY",
        "_UNLOAD",
        "_REMOVE",
        "_REMOVE_WHEN_FREE",
        "_KERNEL",
    )
}


class Machine:
    """Answers each script as it was told to; the last of its words are kept."""

    folder = "/"

    def __init__(self, **answers):
        self.answers = {"_GROUND": "6.1.0\nreno cubic\n", "_STAGE": STAGED.format(sha="ab"),
                        "_TRY": "reno cubic mine\n"} | answers  # fmt: skip
        self.asked = []
        self.sent = {}

    def run(self, argv, *, stdin=b"", timeout_s=60.0):
        _, _, script, _, *words = argv
        name = SCRIPTS.get(script) or f"records {words[0]}"
        self.asked.append((name, *words))
        self.sent[name] = stdin
        answer = self.answers.get(name, "")
        code, out, err = (*answer, "")[:3] if isinstance(answer, tuple) else (0, answer, "")
        return subprocess.CompletedProcess(argv, code, out.encode(), err.encode())


def control(**params):
    use = Module(kernel_name="mine", sha256=SOURCES.sha256, params=params)
    return OwnControl(sources=SOURCES, uses=(use,))


def taken_in(machine, modules=None, told=None, **params):
    modules = modules or kernel_modules.Modules()
    modules.add(control(**params), machine, "the kernel of h1", (told if told is not None else []).append)
    return modules


def test_it_is_built_and_tried_with_the_parameters_of_each_condition():
    machine, told = Machine(), []
    taken_in(machine, told=told, beta="512")
    asked = [words for words in machine.asked if words[0] in ("_BUILD", "_STAGE", "_TRY")]
    digest = SOURCES.sha256
    assert asked == [("_BUILD", digest), ("_STAGE", digest), ("_TRY", digest, "tcp_mine", "beta=512")]
    with tarfile.open(fileobj=io.BytesIO(machine.sent["_BUILD"])) as archive:
        assert archive.getnames() == ["tcp_mine.c", "Kbuild"]
    assert json.loads(machine.sent["_STAGE"]) == {
        "source_sha256": digest, "names": ["mine"], "runner": os.getpid(),
    }  # fmt: skip
    assert told == [
        (
            "built tcp_mine of tcp_mine.c for Linux 6.1.0 by make and loaded it once into the kernel of h1: "
            "what breaks in it breaks that machine"
        )
    ]


def test_where_the_machine_goes_by_dkms_it_builds_and_signs_the_module():
    staged = STAGED.format(sha="ab") + "signer DKMS module signing key\n"
    machine, told = Machine(_BUILD_BY_DKMS="dkms-3.0.10\n", _STAGE=staged), []
    modules = taken_in(machine, told=told)
    assert [name for name, *_ in machine.asked if "BUILD" in name] == ["_BUILD", "_BUILD_BY_DKMS"]
    assert " by dkms-3.0.10, signed by DKMS module signing key and loaded" in told[0]
    assert modules.options([SOURCES.sha256])["modules"]["tcp_mine"] == {
        "source_sha256": SOURCES.sha256, "sha256": "ab", "compiler": "gcc 12",
        "built_by": "dkms-3.0.10", "signer": "DKMS module signing key",
    }  # fmt: skip


def test_what_dkms_does_not_build_is_said_and_make_has_built_it():
    machine, told = Machine(_BUILD_BY_DKMS=(1, "", "Error! Bad return status\n")), []
    modules = taken_in(machine, told=told)
    assert told[0] == (
        "DKMS of the kernel of h1 did not build tcp_mine.c, so what make built there is taken:\n"
        "Error! Bad return status"
    )
    assert modules.options([SOURCES.sha256])["modules"]["tcp_mine"]["built_by"] == "make"


@pytest.mark.parametrize("status", sorted(kernel_modules._LACKS))
def test_what_a_machine_lacks_is_named_with_a_remedy_and_the_guest(status):
    with pytest.raises(EnvironmentUnfitError) as caught:
        taken_in(Machine(_GROUND=(status, "")))
    said = str(caught.value)
    assert said.startswith("a kernel module cannot run in the kernel of h1: the machine ")
    assert said.endswith("or leave --backend out: the guest takes modules, and nothing there can break")


def test_a_name_that_the_kernel_has_is_refused_before_anything_is_built():
    machine = Machine(_GROUND="6.1.0\ncubic mine\n")
    with pytest.raises(ModuleUnfitError, match=r"tcp_mine\.c:2: Linux 6\.1\.0 has .* 'mine' already"):
        taken_in(machine)
    assert not any(name == "_BUILD" for name, *_ in machine.asked)


@pytest.mark.parametrize(
    ("answers", "params", "said"),
    [
        ({"_BUILD": (2, "make: *** no")}, {}, r"does not build for Linux 6\.1\.0: make: \*\*\* no"),
        ({"_STAGE": "compiler gcc\n"}, {}, "make built 0 modules"),
        ({}, {"gamma": "1"}, r"no parameter gamma \(it has beta\)"),
        ({"_TRY": "reno cubic\n"}, {}, "it registers no mine: the kernel offered reno, cubic; see dmesg"),
        ({"_TRY": (1, "")}, {}, "the kernel of h1 does not take it: "),
    ],
)
def test_what_is_refused_leaves_nothing(answers, params, said):
    machine = Machine(**answers)
    with pytest.raises(ModuleUnfitError, match=said):
        taken_in(machine, **params)
    assert machine.asked[-1][:2] == ("_REMOVE", SOURCES.sha256)


def left_by(runner):
    return json.dumps({"source_sha256": "cd", "names": ["mine"], "runner": runner}) + "\n"


LOADED = json.dumps({"source_sha256": "cd", "module": "tcp_mine"}) + "\n"
NOBODY = 2**22 + 1
"""No process has such a number."""


def test_what_a_killed_run_left_is_taken_away_and_its_name_is_free():
    machine = Machine(**{"records built": left_by(NOBODY), "records json": LOADED,
                         "_GROUND": "6.1.0\ncubic mine\n"})  # fmt: skip
    taken_in(machine)
    assert ("_REMOVE", "cd", "tcp_mine", "2") in machine.asked


def test_what_a_killed_run_left_and_still_has_connections_is_waited_for():
    machine = Machine(**{"records built": left_by(NOBODY), "records json": LOADED, "_REMOVE": (1, "")})
    told = []
    with pytest.raises(EnvironmentUnfitError, match="still uses tcp_mine of a run that was killed; reboot"):
        taken_in(machine, told=told)
    assert told == [
        "waiting for connections of a run that was killed, which still use tcp_mine in the kernel of h1"
    ]


def test_what_a_run_has_that_goes_on_stays():
    machine = Machine(**{"records built": left_by(os.getppid()), "_GROUND": "6.1.0\ncubic mine\n"})
    with pytest.raises(ModuleUnfitError, match="already"):
        taken_in(machine)
    assert not any(name.startswith("_REMOVE") for name, *_ in machine.asked)


def test_a_second_module_leaves_the_first_of_the_same_run_alone():
    machine = Machine()
    modules = taken_in(machine)
    machine.answers["records built"] = json.dumps({"source_sha256": SOURCES.sha256, "names": ["mine"],
                                                   "runner": os.getpid()})  # fmt: skip
    other = Sources(
        place=Path("tcp_other.c"), contents={"tcp_other.c": SOURCE.replace("mine", "other").encode()}
    )
    use = Module(kernel_name="other", sha256=other.sha256)
    machine.answers["_TRY"] = "reno cubic other\n"
    modules.add(OwnControl(sources=other, uses=(use,)), machine, "the kernel of h1", [].append)
    assert ("_REMOVE", SOURCES.sha256) not in [words[:2] for words in machine.asked]


def test_name_spaces_that_share_a_kernel_share_the_module():
    machine = Machine()
    modules = taken_in(machine)
    machine.answers["records built"] = json.dumps({"source_sha256": SOURCES.sha256, "names": ["mine"],
                                                   "runner": os.getpid()})  # fmt: skip
    machine.answers["_GROUND"] = "6.1.0\nreno cubic mine\n"
    taken_in(machine, modules)
    assert [name for name, *_ in machine.asked].count("_BUILD") == 1


def test_two_kernels_have_two_files_in_the_provenance():
    modules = taken_in(Machine())
    modules.add(control(), Machine(_STAGE=STAGED.format(sha="cd")), "the kernel of h2", [].append)
    told = modules.options([SOURCES.sha256])["modules"]
    assert {name: made["sha256"] for name, made in told.items()} == {
        "tcp_mine": "ab", "tcp_mine in the kernel of h2": "cd",
    }  # fmt: skip
    assert modules.options(["another"]) == {}


def test_after_a_cell_it_is_out_and_after_the_run_it_is_gone():
    machine = Machine()
    modules = taken_in(machine)
    machine.asked.clear()
    modules.unload()
    modules.close()
    modules.close()
    assert [words[:3] for words in machine.asked] == [
        ("_UNLOAD", SOURCES.sha256, "tcp_mine"),
        ("_REMOVE_WHEN_FREE", SOURCES.sha256, "tcp_mine"),
    ]
