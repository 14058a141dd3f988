"""A virtual clock that is exact to a nanosecond, and that nobody moves by looking at it."""

from __future__ import annotations

from pathlib import Path

from fabbbr.backends.guest.kernel.edits.place import has, substitute


def free(tree: Path) -> None:
    """Make its steps as small as can be, and time stand while somebody only looks.

    User Mode Linux counts in steps of 256 ns: an event then comes as much too late as the one before it did,
    and the phase of the first sleep of all is in every packet. It makes a reading last as long, and a system
    call that fails 1 us, so that who reads until time has passed, or tries until something is ready, gets on.
    But with it whatever a process looks for in vain, also beside the experiment, moves every packet after it.
    Both are counted from one idle instant to the next, and only beyond some thousands do they take time.
    """
    um = tree / "arch/um"
    # TCP counts its timers in ticks: at 100 Hz an RTO would move in steps of 10 ms.
    substitute(um / "Kconfig", (r"(config HZ\n\tint\n\tdefault) 100$", r"\1 1000"))
    internal, time = um / "include/linux/time-internal.h", um / "kernel/time.c"
    substitute(internal, (r"^(#define TIMER_MULTIPLIER) 256$", r"\1 1"))
    substitute(internal, (r"^(#define TIMER_MIN_DELTA) +500$", r"\1 1"))
    substitute(
        time,
        (
            r"^(static unsigned long long time_travel_time;\n)",
            r"\1static unsigned int fabbbr_busy;\n" + _TAKES_TIME,
        ),
    )
    substitute(time, (r"^(\ttime_travel_update_time\(next, true\);\n)", r"\tfabbbr_busy = 0;\n\1"))
    substitute(time, _READING, _READING_UNGUARDED)
    _of_calls(um / "kernel/skas/syscall.c")


_READING = (
    (
        r"(!in_softirq\(\) &&\n\t\t    !time_travel_ext_waiting)\)\n"
        r"(\t\t\ttime_travel_update_time_rel)\(TIMER_MULTIPLIER\);"
    ),
    r"\1 &&\n\t\t    fabbbr_takes_time())\n\2(256);",
)
_READING_UNGUARDED = (
    (
        r"(!in_softirq\(\)(?: &&\n\t\t    !time_travel_ext_waiting)?)\)\n"
        r"(\t\t\ttime_travel_update_time\(time_travel_time \+\n\t+)TIMER_MULTIPLIER,"
    ),
    r"\1 &&\n\t\t    fabbbr_takes_time())\n\g<2>256,",
)
_TAKES_TIME = """\
bool fabbbr_takes_time(void)
{
\treturn ++fabbbr_busy > 4096;
}
"""


def _of_calls(call: Path) -> None:
    if not has(call, r"^\t\t\tum_udelay\(1\);\n"):
        _let_failed_calls_last(call)
    substitute(call, (r"^(void handle_syscall\()", r"extern bool fabbbr_takes_time(void);\n\n\1"))
    substitute(call, (r"^(\t\t\tum_udelay\(1\);\n)", r"\t\t\tif (fabbbr_takes_time())\n\t\1"))


def _let_failed_calls_last(call: Path) -> None:
    """As newer kernels do; 5.10 lets others run at every call, but no time pass for who tries for ever."""
    substitute(call, (r"^(#include <asm/unistd.h>\n)", r"\1#include <asm/delay.h>\n"))
    infinite = r"time_travel_mode == TT_MODE_INFCPU \|\|\n\t    time_travel_mode == TT_MODE_EXTERNAL"
    substitute(call, (rf"^\tif \({infinite}\)\n\t\tschedule\(\);\n", ""))
    known = r"\tif \(syscall >= 0 && syscall <=? \w+\)"
    executed = r"\t\tPT_REGS_SET_SYSCALL_RETURN\(regs,\n\t+EXECUTE_SYSCALL\(syscall, regs\)\);\n"
    substitute(call, (rf"^({known})\n{executed}", r"\1 " + _CALL_AND_WAIT))


_CALL_AND_WAIT = """\
{
\t\tunsigned long ret = EXECUTE_SYSCALL(syscall, regs);

\t\tPT_REGS_SET_SYSCALL_RETURN(regs, ret);
\t\tif (IS_ERR_VALUE(ret) &&
\t\t    (time_travel_mode == TT_MODE_INFCPU ||
\t\t     time_travel_mode == TT_MODE_EXTERNAL)) {
\t\t\tum_udelay(1);
\t\t\tschedule();
\t\t}
\t}
"""
