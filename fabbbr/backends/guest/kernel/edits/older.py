"""What older kernels need to be built and to run on today's machines."""

from __future__ import annotations

from pathlib import Path

from fabbbr.backends.guest.kernel.edits.place import has, substitute


def repair(tree: Path) -> None:
    """Nothing where the kernel is recent."""
    _offer_modules_no_library(tree / "arch/um/os-Linux/user_syms.c")
    _make_room_for_registers(tree / "arch/x86/um/user-offsets.c")
    _never_wait_for_a_thread(tree / "kernel/softirq.c")
    _begin_when_it_is_told(tree / "arch/um/kernel/time.c")
    main = tree / "arch/um/os-Linux/main.c"
    if not (tree / "arch/um/kernel/skas/stub_exe.c").exists():
        _leave_rseq(main)
    if not has(main, r"\bADDR_NO_RANDOMIZE\b"):
        _start_where_it_always_does(main)


def _offer_modules_no_library(symbols: Path) -> None:
    """Functions of the C library were exported to modules, some of which no library of today has."""
    exported = r"^(#define EXPORT_SYMBOL_PROTO\(sym\))\s+\\\n.*\\\n.*\n"
    if has(symbols, exported):
        substitute(symbols, (exported, r"\1\n"))


def _make_room_for_registers(offsets: Path) -> None:
    """Up to Linux 6.12 so many bytes are kept of a process's registers for floating point and vectors.

    The host takes back all that its processor has, or nothing: 11 kB with AMX. They are put on the kernel's
    stacks too: guest.config makes those larger.
    """
    if has(offsets, r"HOST_FP_SIZE, 2696\)"):
        substitute(offsets, (r"(HOST_FP_SIZE), 2696\)", r"\1, 12288)"))


def _never_wait_for_a_thread(softirq: Path) -> None:
    """As since Linux 6.5: packets are worked on also while the thread that helps out with them is about to.

    At one instant of a clock that stands it never gets to, and what came meanwhile was lost, 1000 packets on.
    """
    waits = r"^(static bool ksoftirqd_running\(unsigned long pending\)\n\{\n)(?:\t.*\n|\n)+(\}\n)"
    if has(softirq, waits):
        substitute(softirq, (waits, r"\1\treturn false;\n\2"))


def _begin_when_it_is_told(time: Path) -> None:
    """As since Linux 6.11 and in stable series: the start of the virtual clock was given and not understood.

    Then the guest took its date from the host, and what writes it down was another in each run.
    """
    if has(time, r'__setup\("time-travel-start",'):
        substitute(time, (r'__setup\("time-travel-start",', '__setup("time-travel-start=",'))


def _leave_rseq(main: Path) -> None:
    """Up to Linux 6.12 the guest's processes are copies of this program, with all its memory taken away.

    Today's C library has the host note in that memory on which CPU a process runs (restartable sequences):
    whoever lost the CPU there was killed.
    """
    substitute(main, (r"^(#include <sys/resource.h>\n)", r"\1#include <sys/syscall.h>\n"))
    substitute(main, (r"^(int __init main\()", _LEAVE_RSEQ + r"\1"))
    substitute(main, (r"^(\tset_stklim\(\);\n)", r"\tfabbbr_leave_rseq();\n\1"))


_LEAVE_RSEQ = """\
extern const long __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* Its length is the library's own affair: as long as it was registered. */
static void __init fabbbr_leave_rseq(void)
{
\tunsigned int length;
\tchar *thread;

\tif (!&__rseq_size || !__rseq_size)
\t\treturn;
\tasm("mov %%fs:0, %0" : "=r" (thread));
\tfor (length = 32; length <= 256; length += 4)
\t\tif (!syscall(SYS_rseq, thread + __rseq_offset, length, 1, 0x53053053))
\t\t\treturn;
}

"""


def _start_where_it_always_does(main: Path) -> None:
    """As newer kernels do: the host chose by chance how much memory the guest has, and where in it all lies.

    What is sorted by its address, as flows in the queueing discipline fq, came in another order each time.
    """
    substitute(main, (r"^(#include <sys/resource.h>\n)", r"\1#include <sys/personality.h>\n"))
    substitute(main, (r"^(\tset_stklim\(\);\n)", r"\1" + _START_AGAIN))


_START_AGAIN = """\
\tret = personality(PER_LINUX | ADDR_NO_RANDOMIZE);
\tif (ret >= 0 && !(ret & ADDR_NO_RANDOMIZE))
\t\texecve("/proc/self/exe", argv, envp);
"""
