"""A BPF program of one's own: which sources it is, and what becomes of it as a kernel module."""

import re
from pathlib import Path

import pytest

from fabbbr import sources
from fabbbr.backends.complaints import AS_IT_IS, Against, before_building, of_output, warnings
from fabbbr.backends.guest.module import native
from fabbbr.plan.opening import open_plan
from fabbbr.sources import Sources
from fabbbr.spec.experiment import ModuleChoice

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAM = """\
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "parts/types.h"
// SEC("fentry/gone")
char _license[] SEC("license") = "GPL";
extern unsigned long CONFIG_HZ __kconfig;
struct sock {
	unsigned long sk_pacing_rate;
#define sk_rate sk_pacing_rate
} __attribute__((preserve_access_index));
struct mine { __u32 seen; };
static bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}
SEC("struct_ops")
void BPF_PROG(mine_init, struct sock *sk)
{
}
SEC(".struct_ops")
struct tcp_congestion_ops mine = {
	.init = (void *)mine_init,
	.name = "mine",
};
"""
DECLARED = "struct sock { int x; }; static inline bool before(int a, int b); struct tcp_congestion_ops { };"
MAP = 'struct { __uint(type, BPF_MAP_TYPE_%s); __uint(max_entries, 1); __type(value, int); } m SEC(".maps");'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "types.h").write_text('#include "more.h"\n')
    (tmp_path / "parts" / "more.h").write_text("#define MORE 1\n")
    (tmp_path / "mine.bpf.c").write_text(PROGRAM)
    return tmp_path


def program(text=PROGRAM):
    return Sources(place=Path("mine.bpf.c"), contents={"mine.bpf.c": text.encode()})


def laid_out(text=PROGRAM, declared=DECLARED):
    files = native.laid_out(program(text), declared, Path("/work"))
    return {name: content.decode() for name, content in files.items()}


# Which sources


def test_a_program_is_known_by_its_name_and_comes_with_what_it_includes_from_beside_it(folder):
    for name in ("vmlinux.h", "other.h", "other.c"):
        (folder / name).write_text("")
    found = sources.read(folder / "mine.bpf.c")
    assert found.program == "mine.bpf.c"
    assert list(found.contents) == ["mine.bpf.c", "parts/more.h", "parts/types.h"]
    assert [named.name for named in found.names] == ["mine"]
    assert found.shown("mine.bpf.c", 3) == f"{folder}/mine.bpf.c:3"
    assert found.place_of("program/parts/more.h", 1) == f"{folder}/parts/more.h:1"


def test_a_folder_with_one_program_is_one_whatever_recipe_makes_its_user_side(folder):
    alone = sources.read(folder)
    assert alone.program == "mine.bpf.c"
    (folder / "vmlinux.h").write_text("struct sock;")
    assert sources.read(folder).sha256 == alone.sha256
    (folder / "Makefile").write_text("all:\n\tbpftool gen skeleton mine.bpf.o\n")
    assert sources.read(folder).program == "mine.bpf.c"


def test_a_folder_whose_recipe_builds_a_module_is_a_module_as_ever(folder):
    (folder / "Kbuild").write_text("obj-m := mine.o\n")
    (folder / "vmlinux.h").write_text("")
    found = sources.read(folder)
    assert found.program is None
    assert "vmlinux.h" in found.contents


def test_another_byte_of_what_a_program_includes_is_another_program(folder):
    before = sources.read(folder / "mine.bpf.c").sha256
    (folder / "parts" / "more.h").write_text("#define MORE 2\n")
    assert sources.read(folder / "mine.bpf.c").sha256 != before


def test_what_a_program_includes_from_above_its_folder_is_no_part_of_it(tmp_path):
    (tmp_path / "above.h").write_text("")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "mine.bpf.c").write_text('#include "../above.h"\n')
    assert list(sources.read(tmp_path / "below" / "mine.bpf.c").contents) == ["mine.bpf.c"]


def test_tables_call_a_program_as_its_file():
    assert ModuleChoice(module="./tcp_mine.bpf.c").called == "mine"


def test_a_cell_knows_that_its_sources_are_of_a_program(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text(
        "id: own\ntitle: Own\nslice: two_site\npath: {rate: 10 Mbit/s, rtt: 20 ms}\n"
        f"flows: [{{cca: {{module: {EXAMPLES}/aimd.bpf.c}}, duration: 2 s}}]\n"
    )
    module = open_plan(str(file), seed=1).cells[0].flows[0].module
    assert (module.form, module.kernel_name) == ("bpf", "aimd_bpf")


# What becomes of it


def test_what_the_kernel_has_itself_is_left_out_and_every_line_stays_where_it_was():
    edited = laid_out()["program/mine.bpf.c"]
    assert edited.count("\n") == PROGRAM.count("\n")
    assert "sk_pacing_rate;" not in edited
    assert "__kconfig" not in edited
    assert "#define sk_rate sk_pacing_rate" in edited
    assert "struct mine { __u32 seen; };" in edited
    assert "(void *)" not in edited
    assert edited.splitlines()[-3].split() == [".init", "=", "mine_init,"]


def test_a_function_that_the_kernel_has_too_gets_another_name():
    main = laid_out()["bpf_mine.c"]
    assert "#undef before\n#undef sk_rate\n#define before own_before\n" in main
    assert "own_before" not in laid_out(declared="int x;")["bpf_mine.c"]


def test_every_congestion_control_and_every_map_is_registered():
    text = PROGRAM + MAP % "ARRAY" + "\n" + (MAP % "SK_STORAGE").replace(" m ", " stored ")
    text += (
        PROGRAM[PROGRAM.index('SEC(".struct_ops")') :]
        .replace("mine", "other")
        .replace(".struct_ops", ".struct_ops.link")
    )
    files = laid_out(text)
    main = files["bpf_mine.c"]
    assert "#define FAB_OPS(use) use(mine) use(other)\n" in main
    assert "#define FAB_ARRAYS(use) use(m)\n" in main
    assert "#define FAB_STORAGES(use) use(stored)\n" in main
    assert 'MODULE_LICENSE("GPL");' in main
    assert files["Kbuild"].startswith("obj-m := bpf_mine.o\n")


@pytest.mark.parametrize(
    ("file", "name"),
    [("bpf_cubic.bpf.c", "bpf_cubic"), ("tcp-mine.bpf.c", "bpf_tcp_mine"), ("x/cubic.bpf.c", "bpf_cubic")],
)
def test_a_module_of_a_program_is_not_called_as_one_of_the_kernel(file, name):
    assert native.module_name(file) == name


# What is refused


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("struct mine {", 'SEC("fentry/tcp_ack") struct mine {', "mine.bpf.c:11: a program of section f"),
        ("struct mine {", MAP % "RINGBUF" + "struct mine {", "mine.bpf.c:11: a map of type BPF_MAP"),
        ("struct mine {", "struct sock___old { int x; }; struct mine {", "mine.bpf.c:11: sock___old has"),
        (".init =", ".get_info =", "mine.bpf.c:22: no kernel lets a BPF"),
        ('"GPL"', '"MIT"', "mine.bpf.c:5: its licence is 'MIT'"),
        ('char _license[] SEC("license") = "GPL";', "", "mine.bpf.c: names no licence"),
        ("struct tcp_congestion_ops mine =", "struct mine mine =", "mine.bpf.c: no struct tcp_cong"),
    ],
)  # fmt: skip
def test_what_has_no_native_form_is_told_with_its_line(old, new, said):
    (found,) = native.without_native_form(program(PROGRAM.replace(old, new, 1)))
    assert str(found).startswith(said)


def test_a_program_with_a_native_form_is_not_complained_of():
    assert list(native.without_native_form(program())) == []
    assert list(native.without_native_form(sources.read(EXAMPLES / "aimd.bpf.c"))) == []


AGAINST = Against(
    release="7.3.4",
    prototypes={
        "cong_control": "void (*cong_control)(struct sock *sk, u32 ack, int flag, void *rs)",
        "cwnd_event_tx_start": "void (*cwnd_event_tx_start)(struct sock *sk)",
    },
    exported=frozenset(),
    known=frozenset({"cubictcp_init"}),
)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (
            "program/mine.bpf.c:9:2: error: implicit declaration of function 'bpf_tail_call'",
            "mine.bpf.c:9: .*; bpf_tail_call has no native form: do without it, or ",
        ),
        (
            'ERROR: modpost: "cubictcp_init" [/w/bpf_mine.ko] undefined!',
            "mine.bpf.c: needs cubictcp_init, .* does not export cubictcp_init; do without it, or .*, or ",
        ),
    ],
)
def test_the_compilers_words_name_the_other_way_that_a_program_can_run(output, said):
    assert re.fullmatch(said + re.escape(AS_IT_IS), str(of_output(output, program(), AGAINST)))


def test_a_program_registers_itself_and_calls_nothing_for_it():
    assert before_building(program(), AGAINST) is None
    taken = before_building(program(PROGRAM.replace('"mine"', '"cubic"')), AGAINST)
    assert str(taken).startswith("mine.bpf.c:23: Linux 7.3.4 has a congestion control 'cubic' already")


def test_a_constant_that_a_header_writes_down_is_no_event_that_a_program_waits_for():
    enum = b"enum tcp_ca_event { CA_EVENT_TX_START };"
    both = Sources(place=Path("x"), contents={"a.h": enum, "mine.bpf.c": PROGRAM.encode()})
    assert list(warnings(both, AGAINST)) == []
    uses = PROGRAM.replace("{\n}", "{\n\tint event = CA_EVENT_TX_START;\n}")
    (found,) = warnings(program(uses), AGAINST)
    assert found.place == "mine.bpf.c:19"
