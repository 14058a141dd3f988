"""A congestion control of one's own, from file to job, and what is told of one that will not do."""

import shutil
import subprocess
from pathlib import Path

import pytest

from fabbbr.backends.complaints import Against, before_building, of_output, require_parameters, warnings
from fabbbr.backends.guest.kernel.build import KernelBuildError
from fabbbr.backends.guest.module import elf
from fabbbr.backends.guest.module.build import BuiltModule
from fabbbr.backends.guest.module.places import Places, oops_in
from fabbbr.errors import ModuleUnfitError, PlanError, SpecError, StoreError, UntrustedError, UsageError
from fabbbr.inspection import inspect
from fabbbr.job.congestion import controls, module_commands, requirements
from fabbbr.laboratory import Request, open_or_create, planned
from fabbbr.plan.opening import open_plan
from fabbbr.sources import Sources
from fabbbr.spec import read
from fabbbr.trust import Trust

EXPERIMENT = """\
id: own
title: Of one's own
slice: two_site
path: {rate: 10 Mbit/s, rtt: 20 ms}
flows: [FLOWS]
MORE
repeat: 1
"""
MODULE = """\
static struct tcp_congestion_ops ops = {
	.name = "mine",
};
tcp_register_congestion_control(&ops);
"""
PROTOTYPE = "void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)"
AGAINST = Against(
    release="7.3.4",
    prototypes={
        "cong_control": PROTOTYPE,
        "cwnd_event_tx_start": "void (*cwnd_event_tx_start)(struct sock *sk)",
    },
    exported=frozenset({"tcp_slow_start"}),
    known=frozenset({"tcp_slow_start", "tcp_cwnd_restart"}),
)


def text(flows="{cca: $cca, duration: 2 s}", more="vary: {cca: [cubic, mine]}"):
    return EXPERIMENT.replace("FLOWS", flows).replace("MORE", more)


def parsed(*, ccas=None, overrides=(), **how):
    return read.parse(text(**how), source="f.yaml", ccas=ccas, overrides=overrides)


def mistake(**how):
    with pytest.raises(SpecError) as caught:
        parsed(**how)
    return str(caught.value)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tcp_mine").mkdir()
    (tmp_path / "tcp_mine" / "tcp_mine.c").write_text(MODULE)
    return tmp_path


def plan(folder, **how):
    file = folder / "own.yaml"
    ccas = how.pop("ccas", None)
    file.write_text(text(**how))
    return open_plan(str(file), seed=1, ccas=ccas)


INLINE = {
    "flows": "{cca: {module: ./tcp_mine, params: {beta: $beta}}, duration: 2 s}",
    "more": "vary: {beta: [1, 2]}",
}

# The file


def test_a_module_stands_where_a_name_does_and_tables_call_it_as_its_folder():
    (condition, _) = parsed(**INLINE).conditions
    (group,) = condition.setup.flows
    assert (group.cca, condition.setup.module_of(group).params) == ("mine", {"beta": "1"})


def test_a_name_of_the_file_is_a_value_of_an_axis():
    more = "ccas: {mine: {module: ./tcp_mine}}\nvary: {cca: [cubic, mine]}"
    setups = {one.axes["cca"]: one.setup for one in parsed(more=more).conditions}
    assert setups["cubic"].module_of(setups["cubic"].flows[0]) is None
    assert setups["mine"].module_of(setups["mine"].flows[0]).module == "./tcp_mine"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"flows": "{cca: ./tcp_mine, duration: 2 s}", "more": ""}, "write cca: {module: ./tcp_mine}"),
        (
            {"flows": "{cca: {module: ./x, params: {beta: a b}}, duration: 2 s}", "more": ""},
            "flows[0].cca.params.beta: 'a b' cannot be a module's parameter",
        ),
        (
            {"more": "ccas: {cubic: {module: ./x}}\nvary: {cca: [cubic]}"},
            "'cubic' is what a congestion control of the kernel is called",
        ),
        (
            {"more": "ccas: {a_name_of_sixteen: {module: ./x}}\nvary: {cca: [cubic]}"},
            "should have at most 15 characters",
        ),
        (
            {"flows": "{cca: {name: cubic, params: {hystart: 0}}, duration: 2 s}", "more": ""},
            "flows[0].cca.module: is missing; add e.g. module: ./tcp_mine; parameters of one that",
        ),
        ({"flows": "{cca: {module: ./tcp_cubic.c}, duration: 2 s}", "more": ""}, "cubic would name two"),
        (
            {"flows": "{cca: {module: ./x, params: {b: 1}}, size: 1 MB}, {cca: {module: ./x}, size: 1 MB}",
             "more": ""},
            "a kernel has a module once",
        ),
        (
            {"flows": "{cca: {module: ./x}, profile: draft01, duration: 2 s}", "more": ""},
            "remove profile and implementation",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_its_line(how, said):
    found = mistake(**how)
    assert said in found
    assert found.startswith("f.yaml:")


def test_a_module_of_the_command_line_runs_beside_what_the_experiment_compares():
    more = "vary: {cca: [cubic, bbr1]}"
    assert parsed(more=more, ccas={"mine": "/m"}).axes == {"cca": ("cubic", "bbr1", "mine")}


def test_a_module_of_the_command_line_that_is_named_runs_where_it_is_named():
    alone = {"flows": "{cca: cubic, duration: 2 s}", "more": ""}
    (condition,) = parsed(**alone, ccas={"mine": "/m"}, overrides=("flows.0.cca=mine",)).conditions
    assert condition.setup.flows[0].cca == "mine"
    with pytest.raises(UsageError, match=r"nothing runs it.*--set flows.0.cca=mine"):
        parsed(**alone, ccas={"mine": "/m"})


# The plan and the job


def test_a_cell_knows_its_module_by_sources_name_and_parameters(folder):
    cells = {cell.axes["beta"]: cell for cell in plan(folder, **INLINE).cells}
    one, two = (cells[beta].flows[0].module for beta in "12")
    assert (one.kernel_name, one.params, two.params) == ("mine", {"beta": "1"}, {"beta": "2"})
    assert one.sha256 == two.sha256
    assert [command.argv[-4:] for command in module_commands(cells["2"])] == [
        ("load", two.sha256, "mine", "beta=2")
    ]
    assert requirements(cells["2"]) == ()
    assert [(one.kernel_name, one.module) for one in controls(cells["2"])] == [("mine", two)]


def test_a_place_of_the_command_line_is_below_the_current_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)
    made = plan(folder, more="vary: {cca: [cubic]}", ccas={"mine": Path("tcp_mine")})
    assert {cell.flows[0].cca: cell.flows[0].module is None for cell in made.cells} == {
        "cubic": True,
        "mine": False,
    }


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (MODULE.replace('"mine"', "NAME"), 'has .name = "…" written out'),
        (
            MODULE.replace("mine", "one") + MODULE.replace("mine", "other"),
            "registers one, other; say which: name: one",
        ),
    ],
)
def test_a_module_whose_name_cannot_be_told_must_be_named(folder, module, said):
    (folder / "tcp_mine" / "tcp_mine.c").write_text(module)
    with pytest.raises(PlanError, match=said):
        plan(folder, **INLINE)
    named = INLINE["flows"].replace("params", "name: other, params")
    assert plan(folder, **{**INLINE, "flows": named}).cells[0].flows[0].module.kernel_name == "other"


def test_a_run_folder_does_not_mix_two_states_of_a_module(folder):
    request = Request(experiment=str(folder / "own.yaml"), out=folder / "run")
    plan(folder, **INLINE)
    open_or_create(request, planned(request))
    open_or_create(request, planned(request))
    with (folder / "tcp_mine" / "tcp_mine.c").open("a") as file:
        file.write("/* changed */\n")
    with pytest.raises(
        StoreError,
        match=r"holds cells of mine of other sources \([0-9a-f]{16}, now [0-9a-f]{16}\): .* another --out",
    ):
        open_or_create(request, planned(request))


def test_a_run_folder_keeps_the_sources_and_notices_an_edit_of_them(folder):
    request = Request(experiment=str(folder / "own.yaml"), out=folder / "run")
    ((sha256, kept),) = plan(folder, **INLINE).modules.items()
    made = open_or_create(request, planned(request))
    for _ in range(2):
        made.keep_module(sha256, kept.contents)
    copy = folder / "run" / "modules" / sha256[:16] / "tcp_mine.c"
    assert copy.read_text() == MODULE
    assert inspect(made, raw_files=True).problems == ()
    copy.write_text(MODULE + " ")
    (problem,) = inspect(made, raw_files=True).problems
    assert f"modules/{sha256[:16]} is not the module that was run" in problem
    copy.unlink()
    copy.symlink_to(folder / "tcp_mine" / "tcp_mine.c")
    (problem,) = inspect(made, raw_files=True).problems
    assert "symbolic link" in problem


def test_a_module_of_a_file_is_asked_about_in_its_own_words(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(UntrustedError, match="a module's Makefile runs with all your rights"):
        Trust().require(tmp_path / "tcp_mine", b"x", kind="module")


# What is told


def sources(code, name="tcp_mine.c"):
    return Sources(place=Path("tcp_mine"), contents={name: code.encode()})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "a_name_of_sixteen",
            "tcp_mine/tcp_mine.c:2: the name 'a_name_of_sixteen' has 17 characters, and Linux 7.3.4",
        ),
        ("cubic", "tcp_mine/tcp_mine.c:2: Linux 7.3.4 has a congestion control 'cubic' already"),
    ],
)
def test_a_name_that_the_kernel_would_not_take_is_told_with_its_line(name, said):
    assert str(before_building(sources(MODULE.replace("mine", name)), AGAINST)).startswith(said)


def test_a_name_of_fifteen_characters_is_taken():
    assert before_building(sources(MODULE.replace('"mine"', '"fifteen_letters"')), AGAINST) is None


def test_what_registers_nothing_is_no_congestion_control():
    assert "tcp_register_congestion_control" in before_building(sources("int x;"), AGAINST).reason


TWO_ARGUMENTS = """\
/x/tcp_mine.c:7:27: error: initialization of 'void (*)(struct sock *, u32, int, …)' \
from incompatible pointer type 'void (*)(struct sock *, const struct rate_sample *)' [-Werror=incompatible]
    7 |         .cong_control   = main,
/x/tcp_mine.c:7:27: note: (near initialization for 'ops.cong_control')
"""


@pytest.mark.parametrize(
    ("output", "place", "said"),
    [
        (TWO_ARGUMENTS, "tcp_mine/tcp_mine.c:7", PROTOTYPE),
        (
            "/x/tcp_mine.c:3:9: error: implicit declaration of function 'prandom_u32_max'; did you mean",
            "tcp_mine/tcp_mine.c:3",
            "get_random_u32_below in its place",
        ),
        (
            "/x/tcp_mine.c:3:9: error: implicit declaration of function 'tcp_slow_start'",
            "tcp_mine/tcp_mine.c:3",
            "include the header that declares tcp_slow_start",
        ),
        (
            'ERROR: modpost: "tcp_cwnd_restart" [/x/tcp_mine.ko] undefined!',
            "tcp_mine/tcp_mine.c:5",
            "does not export tcp_cwnd_restart",
        ),
        (
            "ERROR: modpost: tcp_mine.ko: symbol 'tcp_cwnd_restart' undefined!",
            "tcp_mine/tcp_mine.c:5",
            "does not export tcp_cwnd_restart",
        ),
        (
            "ERROR: modpost: tcp_mine.ko: symbol 'tcp_cwnd_restart' exported twice. Previous",
            "tcp_mine/tcp_mine.c:5",
            "remove its EXPORT_SYMBOL lines",
        ),
        (
            "ERROR: modpost: tcp_mine.ko: GPL-incompatible module uses GPL-only symbol 'tcp_slow_start'",
            "tcp_mine/tcp_mine.c:6",
            'MODULE_LICENSE("GPL")',
        ),
        (
            "ERROR: modpost: GPL-incompatible module tcp_mine.ko uses GPL-only symbol 'tcp_slow_start'",
            "tcp_mine/tcp_mine.c:6",
            'MODULE_LICENSE("GPL")',
        ),
        (
            "/x/tcp_mine.c:1:10: fatal error: my.h: No such file or directory",
            "tcp_mine/tcp_mine.c:1",
            "put my.h",
        ),
        ("make: *** No rule to make target 'x'.  Stop.", "tcp_mine", "No rule to make target"),
    ],
)
def test_what_the_tools_say_is_told_with_place_reason_and_remedy(output, place, said):
    code = MODULE + 'tcp_cwnd_restart(sk, 1);\nMODULE_LICENSE("Proprietary");\n'
    complaint = of_output(output, sources(code), AGAINST)
    assert complaint.place == place
    assert said in str(complaint)


def test_an_event_that_went_to_an_operation_of_its_own_is_told():
    (one,) = warnings(sources("if (event == CA_EVENT_TX_START)\n"), AGAINST)
    assert one.place == "tcp_mine/tcp_mine.c:1"
    assert list(warnings(sources("CA_EVENT_TX_START\n.cwnd_event_tx_start = f\n"), AGAINST)) == []


BUILT = BuiltModule(
    folder="x", name="mine", source_sha256="0", sha256="0", compiler="gcc", kernel_release="7.3.4",
    kernel_sha256="0", parameters={"beta": "uint", "fast": "bool"}, warnings=[],
)  # fmt: skip


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"bata": "1"}, "no parameter bata \\(it has beta, fast\\)"),
        ({"beta": "0.7"}, "uint: write a whole number"),
        ({"beta": "-1"}, "0 to 4294967295"),
        ({"beta": "4294967296"}, "0 to 4294967295"),
        ({"fast": "2"}, "write 1 or 0"),
    ],
)
def test_a_parameter_that_the_kernel_would_ignore_or_refuse_is_refused(params, said):
    with pytest.raises(ModuleUnfitError, match=said):
        require_parameters(BUILT.parameters, params, Path("tcp_mine"))


def test_parameters_are_taken_as_the_kernel_takes_them():
    require_parameters(BUILT.parameters, {"beta": "0x10", "fast": "Y"}, Path("tcp_mine"))
    require_parameters(BUILT.parameters, {"beta": "4294967295"}, Path("tcp_mine"))


def test_an_oops_is_read_from_a_console():
    oops = oops_in("quiet\nKernel panic - not syncing: Kernel mode fault at addr 0x56c, ip 0xe082f004\n")
    assert oops.instruction == 0xE082F004
    assert oops_in("all is well") is None


CODE = """\
int first(int x)
{
	return x + 1;
}
__attribute__((section(".text.unlikely"))) int second(int x)
{
	return x + 2;
}
__attribute__((section(".init.text"))) int third(int x)
{
	return x + 3;
}
"""


@pytest.fixture
def compiled(tmp_path):
    if shutil.which("gcc") is None or shutil.which("addr2line") is None:
        pytest.skip("there is no compiler")
    (tmp_path / "code.c").write_text(CODE)
    argv = ("gcc", "-g", "-O0", "-fcf-protection=none", "-c", "code.c", "-o", "code.o")
    subprocess.run(argv, cwd=tmp_path, check=True)
    return tmp_path / "code.o"


def test_an_address_in_a_loaded_module_is_a_function_with_its_line(compiled):
    parts = elf.sections(compiled.read_bytes())
    unlikely = -(-len(parts[".text"].content) // parts[".text.unlikely"].alignment)
    at = {"first": 0, "second": unlikely * parts[".text.unlikely"].alignment}
    base = 0x60000000
    for function, line in (("first", 2), ("second", 6)):
        place = Places(compiled).place(base + at[function], base)
        assert (place.function, place.line[1]) == (function, line)
        assert sources(CODE, "code.c").place_of(*place.line) == f"tcp_mine/code.c:{line}"


@pytest.mark.parametrize("off", [-1, 4096])
def test_an_address_outside_of_a_module_is_no_place_in_it(compiled, off):
    assert Places(compiled).place(0x60000000 + off, 0x60000000) is None


def test_what_is_no_elf_file_is_refused():
    with pytest.raises(KernelBuildError):
        elf.sections(b"#!/bin/sh\n")
