"""Edits of kernels that have the same thing in other words, without a kernel."""

import re

import pytest

from fabbbr.backends.guest.kernel.edits import INGREDIENTS, clock, edit, generator, older, place
from fabbbr.errors import KernelBuildError

OLD, NEW = (r"^old (\w+)$", r"\1 mended"), (r"^new (\w+)$", r"\1 mended")


@pytest.fixture
def file(tmp_path):
    def written(text):
        path = tmp_path / "time.c"
        path.write_text(text, encoding="utf-8")
        return path

    return written


@pytest.mark.parametrize("text", ["a\nold clock\n", "a\nnew clock\n"])
def test_of_several_ways_the_one_that_fits_is_taken(file, text):
    path = file(text)
    place.substitute(path, NEW, OLD)
    assert path.read_text(encoding="utf-8") == "a\nclock mended\n"


def test_the_first_way_that_fits_is_the_only_one_taken(file):
    path = file("old clock\nnew clock\n")
    place.substitute(path, NEW, OLD)
    assert path.read_text(encoding="utf-8") == "old clock\nclock mended\n"


@pytest.mark.parametrize("text", ["", "other clock\n", "old clock\nold clock\n"])
def test_a_place_that_is_not_there_just_once_is_named(file, text):
    path = file(text)
    with pytest.raises(
        KernelBuildError, match=r"time\.c .* not as expected \(\d places for '\^new .*'\^old "
    ):
        place.substitute(path, NEW, OLD)
    assert path.read_text(encoding="utf-8") == text


def test_a_source_without_the_file_is_unknown(tmp_path):
    with pytest.raises(KernelBuildError, match=r"has no random\.c"):
        place.substitute(tmp_path / "random.c", OLD)


def test_a_folder_that_is_no_kernel_source_is_refused_by_name(tmp_path):
    for folder in ("include/linux", "arch/um/os-Linux", "drivers/char"):
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(KernelBuildError, match="this kernel source has no Makefile"):
        edit(tmp_path)


def test_all_that_decides_the_edits_is_in_the_recipe():
    names = {file.name for file in INGREDIENTS}
    assert {"older.py", "place.py", "fabbbr_prandom.h", "fab_bbr_core.c"} <= names
    assert all(file.is_file() for file in INGREDIENTS)


IOCTL = """\
{
	switch (cmd) {
	case RNDRESEEDCRNG:
		if (!crng_ready())
			return -ENODATA;
		crng_reseed(%s);
		return 0;
"""
BEFORE_6_2 = f"""\
static void crng_reseed(void)
{{
	unsigned long flags;
	u8 key[CHACHA_KEY_SIZE];

	extract_entropy(key, sizeof(key));
}}
static long random_ioctl(void)
{IOCTL % ""}"""
SINCE_6_2 = f"""\
static void crng_reseed(struct work_struct *work)
{{
	unsigned long flags;
}}
static long random_ioctl(void)
{IOCTL % "NULL"}"""


@pytest.mark.parametrize("text", [BEFORE_6_2, SINCE_6_2])
def test_who_asks_for_other_numbers_gets_them_in_old_kernels_too(file, text):
    path = file(text)
    generator._reseeding(path)
    changed = path.read_text(encoding="utf-8")
    assert changed.count("fabbbr_seed_anew();") == 1
    assert changed.index("fabbbr_seeded() && crng_ready()") < changed.index("random_ioctl")
    assert changed.index("fabbbr_seed_anew();") > changed.index("case RNDRESEEDCRNG:"), "nobody else may"


BEFORE_5_18 = """\
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/ptrace.h>
#define crng_ready() (likely(crng_init > 1))
static void _extract_crng(struct crng_state *crng, __u8 out[CHACHA_BLOCK_SIZE]);
static void _extract_crng(struct crng_state *crng,
			  __u8 out[CHACHA_BLOCK_SIZE])
{
	unsigned long v, flags;

	chacha20_block(&crng->state[0], out);
}
static void _crng_backtrack_protect(struct crng_state *crng,
				    __u8 tmp[CHACHA_BLOCK_SIZE], int used)
{
	unsigned long	flags;
	__u32		*s, *d;

	if (used)
		extract_crng(tmp);
}
static ssize_t extract_crng_user(void __user *buf, size_t nbytes)
{
	ssize_t ret = 0;

	while (nbytes) {
		extract_crng(tmp);
	}
}
static void _get_random_bytes(void *buf, int nbytes)
{
	if (nbytes > 0) {
		extract_crng(tmp);
	}
}
static long random_ioctl(struct file *f, unsigned int cmd, unsigned long arg)
{
	switch (cmd) {
	case RNDRESEEDCRNG:
		if (!capable(CAP_SYS_ADMIN))
			return -EPERM;
		if (crng_init < 2)
			return -ENODATA;
		crng_reseed(&primary_crng, NULL);
		return 0;
	}
}
SYSCALL_DEFINE3(getrandom, char __user *, buf, size_t, count,
		unsigned int, flags)
{
	if (!(flags & GRND_INSECURE) && %s) {
	}
}
u64 get_random_u64(void)
{
	u64 ret;
	static void *previous;

	warn_unseeded_randomness(&previous);

	ret = batch->entropy_u64[batch->position++];
	return ret;
}
u32 get_random_u32(void)
{
	u32 ret;
	static void *previous;

	warn_unseeded_randomness(&previous);

	ret = batch->entropy_u32[batch->position++];
	return ret;
}
"""


@pytest.mark.parametrize("not_yet", ["!crng_ready()", "(crng_init == 0)"])
def test_the_generator_of_before_gives_from_streams_alone(file, not_yet):
    path = file(BEFORE_5_18 % not_yet)
    generator.seed(path)
    functions = dict(_functions(path.read_text(encoding="utf-8")))
    for name in ("_extract_crng", "get_random_u32", "get_random_u64"):
        given = functions[name].index("fabbbr_random(FABBBR_KERNEL, ")
        assert given < functions[name].index("return")
        assert given < max(functions[name].find("chacha20_block"), functions[name].find("batch->"))
    assert functions["_crng_backtrack_protect"].index("return;") < functions["_crng_backtrack_protect"].index(
        "extract_crng(tmp)"
    ), "it would draw for the kernel when a process asked"
    assert "fabbbr_random(FABBBR_PROCESSES, tmp," in functions["extract_crng_user"]
    assert "FABBBR" not in functions["_get_random_bytes"], "it asks _extract_crng"
    asked = functions["random_ioctl"]
    assert asked.index("-EPERM") < asked.index("fabbbr_seed_anew();") < asked.index("-ENODATA")


def test_nobody_waits_for_entropy_that_a_seed_makes_needless(file):
    for not_yet in ("!crng_ready()", "(crng_init == 0)"):
        path = file(BEFORE_5_18 % not_yet)
        generator.seed(path)
        text = path.read_text(encoding="utf-8")
        assert "#define crng_ready() (fabbbr_seeded() || (likely(crng_init > 1)))\n" in text
        assert "GRND_INSECURE) && !fabbbr_seeded() && (crng_init == 0)" in text or not_yet == "!crng_ready()"


def _functions(text):
    """Name → body of each function that is defined."""
    found = re.findall(r"^[\w\s*]*?(\w+)\([^;{]*\)\n\{\n(.*?)^\}", text, flags=re.MULTILINE | re.DOTALL)
    return [(name, body) for name, body in found]


OF_5_10 = """\
#include <asm/unistd.h>

void handle_syscall(struct uml_pt_regs *r)
{
	if (time_travel_mode == TT_MODE_INFCPU ||
	    time_travel_mode == TT_MODE_EXTERNAL)
		schedule();

	syscall = UPT_SYSCALL_NR(r);
	if (syscall >= 0 && syscall <= __NR_syscall_max)
		PT_REGS_SET_SYSCALL_RETURN(regs,
				EXECUTE_SYSCALL(syscall, regs));

out:
"""


def test_a_call_that_fails_for_ever_gets_on_in_old_kernels_too(file):
    path = file(OF_5_10)
    clock._of_calls(path)
    changed = path.read_text(encoding="utf-8")
    assert changed.count("schedule();") == changed.count("um_udelay(1);") == 1
    assert "\t\t\tif (fabbbr_takes_time())\n\t\t\t\tum_udelay(1);\n" in changed
    assert changed.count("EXECUTE_SYSCALL(syscall, regs)") == 1


@pytest.mark.parametrize("said", ["time-travel-start", "time-travel-start="])
def test_the_virtual_clock_begins_when_it_is_told_in_old_kernels_too(file, said):
    path = file(f'__setup("{said}", setup_time_travel_start);\n')
    older._begin_when_it_is_told(path)
    assert path.read_text(encoding="utf-8") == '__setup("time-travel-start=", setup_time_travel_start);\n'


@pytest.mark.parametrize("said", ["DEFINE_LONGS(HOST_FP_SIZE, 2696);", "DEFINE(HOST_IP, RIP);"])
def test_old_kernels_keep_all_registers_of_processors_with_amx(file, said):
    path = file(said)
    older._make_room_for_registers(path)
    assert path.read_text(encoding="utf-8") == said.replace("2696", "12288")


EXPORTING = """\
#define EXPORT_SYMBOL_PROTO(sym)       \\
	int sym(void);                  \\
	EXPORT_SYMBOL(sym);

EXPORT_SYMBOL_PROTO(__xmknod);
"""


@pytest.mark.parametrize("said", [EXPORTING, "EXPORT_SYMBOL(memcpy);\n"])
def test_modules_get_nothing_of_a_library_that_no_longer_has_it(file, said):
    path = file(said)
    older._offer_modules_no_library(path)
    changed = path.read_text(encoding="utf-8")
    assert "int sym(void)" not in changed
    assert changed.count("EXPORT_SYMBOL") == said.count("EXPORT_SYMBOL") - said.count("int sym(void)")


def test_processes_that_are_copies_of_the_kernel_leave_restartable_sequences_first(file):
    path = file("#include <sys/resource.h>\n\nint __init main(int argc)\n{\n\tset_stklim();\n}\n")
    older._leave_rseq(path)
    changed = path.read_text(encoding="utf-8")
    assert changed.index("fabbbr_leave_rseq(void)") < changed.index("int __init main(")
    assert changed.endswith("{\n\tfabbbr_leave_rseq();\n\tset_stklim();\n}\n")


def test_a_kernel_begins_at_the_same_place_each_time(file):
    path = file("#include <sys/resource.h>\n{\n\tset_stklim();\n}\n")
    older._start_where_it_always_does(path)
    changed = path.read_text(encoding="utf-8")
    assert "ADDR_NO_RANDOMIZE" in changed
    assert changed.index("set_stklim();") < changed.index("execve(")


WAITING = """\
static bool ksoftirqd_running(unsigned long pending)
{
	struct task_struct *tsk = __this_cpu_read(ksoftirqd);

	if (pending & SOFTIRQ_NOW_MASK)
		return false;
	return tsk && (tsk->state == TASK_RUNNING);
}

static void wakeup_softirqd(void)
{
}
"""


def test_packets_of_old_kernels_do_not_wait_for_a_thread(file):
    path = file(WAITING)
    older._never_wait_for_a_thread(path)
    changed = path.read_text(encoding="utf-8")
    assert "pending)\n{\n\treturn false;\n}\n\nstatic void wakeup_softirqd" in changed
