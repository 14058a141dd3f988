"""The changes to the kernel source: a seed for all randomness, a finer timer tick, and BBR versions 2 and 3."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from fabbbr.bundled import folder
from fabbbr.errors import KernelBuildError

_HERE = Path(__file__).parent
SEEDED_RANDOM = tuple(
    _HERE / name for name in ("fabbbr_random.h", "fabbbr_random.c", "fabbbr_places.h", "fabbbr_places.c")
)


def bbr_sources() -> tuple[Path, ...]:
    """The files of the module ``fab_bbr`` that the kernel takes in; the same files that nodes get through DKMS."""
    names = ("Kbuild", "fab_bbr_core.c", "fab_bbr_core.h", "fab_bbr_module.c")
    return tuple(folder("playbooks") / "roles/bbr/files" / name for name in names)


def edit(tree: Path) -> None:
    """The changes to the source; each must find its place exactly once."""
    _seed_randomness(tree)
    _free_the_clock(tree / "arch/um")
    # TCP counts its timers in ticks: at 100 Hz an RTO would move in steps of 10 ms.
    _substitute(tree / "arch/um/Kconfig", r"(config HZ\n\tint\n\tdefault) 100$", r"\1 1000")
    _take_in_bbr(tree / "net/ipv4")


def _seed_randomness(tree: Path) -> None:
    """Streams in the place of the host's entropy, of what processes get, and of what the kernel draws for itself.

    The ioctl RNDRESEEDCRNG starts them anew; without a seed all is as it always is.
    """
    common, of_host, by_place, of_kernel = SEEDED_RANDOM
    for file, places in (
        (common, ("include/linux", "arch/um/os-Linux")),
        (of_host, ("arch/um/os-Linux",)),
        (by_place, ("include/linux",)),
        (of_kernel, ("drivers/char",)),
    ):
        for place in places:
            shutil.copy(file, tree / place)
    makefile = tree / "arch/um/os-Linux/Makefile"
    _substitute(makefile, r"^(obj-y = )", r"\1fabbbr_random.o ")
    _substitute(makefile, r"^(USER_OBJS := )", r"\1fabbbr_random.o ")
    _substitute(tree / "drivers/char/Makefile", r"^(obj-y\s*\+= mem.o random.o)$", r"\1 fabbbr_places.o")

    util = tree / "arch/um/os-Linux/util.c"
    _substitute(util, r"^(ssize_t os_getrandom\()", r'#include "fabbbr_random.h"\n\n\1')
    _substitute(util, r"^(\treturn getrandom\(buf, len, flags\);)", _FROM_HOST + r"\1")

    random = tree / "drivers/char/random.c"
    _substitute(random, r"^(#define pr_fmt\(fmt\) .*\n)", r"\1#define FABBBR_PLAIN_RANDOM\n")
    _substitute(random, r"^(#include <linux/ptrace.h>\n)", r"\1#include <linux/fabbbr_random.h>\n")
    _substitute(random, r"^(static void crng_reseed\(struct work_struct \*work\)\n\{\n)", r"\1" + _ANEW)
    _substitute(random, r"(\tif \(!len\)\n\t\treturn;\n)(?=\n\tfirst_block_len)", r"\1" + _FOR_KERNEL)
    _substitute(
        random,
        r"(static void crng_make_state\([^{]*\{\n(?:\t.*\n)*?)(\n\tBUG_ON\(random_data_len > 32\);\n)",
        r"\1\2" + _FOR_PROCESSES,
    )
    # By the place that draws, and for keys that are drawn once: see fabbbr_places.h.
    drawn = tree / "include/linux/random.h"
    _substitute(drawn, r"^(#endif /\* _LINUX_RANDOM_H \*/)$", r"#include <linux/fabbbr_places.h>\n\n\1")
    once = tree / "include/linux/once.h"
    _substitute(once, r"^(#include <linux/jump_label.h>\n)", r"\1#include <linux/random.h>\n")
    for macro in ("DO_ONCE", "DO_ONCE_SLEEPABLE"):
        _substitute(once, rf"^(\t{macro})\(get_random_bytes, ", r"\1(fabbbr_secret, __FILE__, __LINE__, ")


_FROM_HOST = """\
\tif (fabbbr_seeded()) {
\t\tfabbbr_random(FABBBR_HOST, buf, len);
\t\treturn len;
\t}
"""
_ANEW = """\
\tif (fabbbr_seeded() && crng_ready()) {
\t\tif (!work) {
\t\t\tfabbbr_seed_anew();
\t\t\tWRITE_ONCE(base_crng.generation, base_crng.generation + 1);
\t\t}
\t\treturn;
\t}
"""
"""The generation tells the batches, from which single words are drawn, that they are out of date."""
_FOR_KERNEL = """\

\tif (fabbbr_seeded()) {
\t\tfabbbr_random(FABBBR_KERNEL, buf, len);
\t\treturn;
\t}
"""
_FOR_PROCESSES = """\

\tif (fabbbr_seeded()) {
\t\tu8 fabbbr_key[CHACHA_KEY_SIZE];

\t\tfabbbr_random(FABBBR_PROCESSES, fabbbr_key, sizeof(fabbbr_key));
\t\tcrng_fast_key_erasure(fabbbr_key, chacha_state, random_data, random_data_len);
\t\treturn;
\t}
"""


def _free_the_clock(um: Path) -> None:
    """A virtual clock that is exact to a nanosecond, and that nobody moves by looking at it.

    User Mode Linux counts in steps of 256 ns: an event then comes as much too late as the one before it did, and the
    phase of the first sleep of all is in every packet. It makes a reading last as long, and a system call
    that fails 1 us, so that who reads until time has passed, or tries until something is ready, gets on. But
    with it whatever a process looks for in vain, also beside the experiment, moves every packet after it.
    Both are counted from one idle instant to the next, and only beyond some thousands do they take time.
    """
    internal, time = um / "include/linux/time-internal.h", um / "kernel/time.c"
    _substitute(internal, r"^(#define TIMER_MULTIPLIER) 256$", r"\1 1")
    _substitute(internal, r"^(#define TIMER_MIN_DELTA) +500$", r"\1 1")
    _substitute(
        time,
        r"^(static unsigned long long time_travel_time;\n)",
        r"\1static unsigned int fabbbr_busy;\n" + _TAKES_TIME,
    )
    _substitute(time, r"^(\ttime_travel_update_time\(next, true\);\n)", r"\tfabbbr_busy = 0;\n\1")
    _substitute(
        time,
        r"(!in_softirq\(\) &&\n\t\t    !time_travel_ext_waiting)\)\n(\t\t\ttime_travel_update_time_rel)\(TIMER_MULTIPLIER\);",
        r"\1 &&\n\t\t    fabbbr_takes_time())\n\2(256);",
    )
    call = um / "kernel/skas/syscall.c"
    _substitute(call, r"^(void handle_syscall\()", r"extern bool fabbbr_takes_time(void);\n\n\1")
    _substitute(call, r"^(\t\t\tum_udelay\(1\);\n)", r"\t\t\tif (fabbbr_takes_time())\n\t\1")


_TAKES_TIME = """\
bool fabbbr_takes_time(void)
{
\treturn ++fabbbr_busy > 4096;
}
"""


def _take_in_bbr(place: Path) -> None:
    (place / "fab_bbr").mkdir(exist_ok=True)
    for file in bbr_sources():
        shutil.copy(file, place / "fab_bbr")
    _substitute(place / "Makefile", r"^(obj-\$\(CONFIG_TCP_CONG_BBR\) .*)$", r"\1\nobj-y += fab_bbr/")


def _substitute(file: Path, pattern: str, replacement: str) -> None:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        message = f"this kernel source has no {file.name}: {error.strerror}; it is not one that fabbbr knows"
        raise KernelBuildError(message) from error
    changed, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
    if count != 1:
        message = f"{file.name} of this kernel source is not as expected ({count} places for {pattern!r})"
        raise KernelBuildError(message)
    file.write_text(changed, encoding="utf-8")
