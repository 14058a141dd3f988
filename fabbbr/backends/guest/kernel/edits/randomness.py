"""A seed for all randomness of the guest."""

from __future__ import annotations

import shutil
from pathlib import Path

from fabbbr.backends.guest.kernel.edits import generator
from fabbbr.backends.guest.kernel.edits.place import has, substitute

_HERE = Path(__file__).parent.parent
_SHARED, _OF_HOST, _BY_PLACE, _OF_KERNEL, _BY_OLD_NAMES = FILES = tuple(
    _HERE / name
    for name in (
        "fabbbr_random.h", "fabbbr_random.c", "fabbbr_places.h", "fabbbr_places.c", "fabbbr_prandom.h",
    )
)  # fmt: skip


def seed(tree: Path) -> None:
    """Streams in place of the host's entropy, of what processes get, and of what the kernel draws for itself.

    The ioctl RNDRESEEDCRNG starts them anew; without a seed all is as it always is.
    """
    _copy_streams(tree)
    _of_host(tree / "arch/um")
    generator.seed(tree / "drivers/char/random.c")
    _by_place(tree)
    if has(tree / "include/linux/prandom.h", r"\bprandom_u32_max\("):
        _by_old_names(tree)


def _copy_streams(tree: Path) -> None:
    for file, places in (
        (_SHARED, ("include/linux", "arch/um/os-Linux")),
        (_OF_HOST, ("arch/um/os-Linux",)),
        (_BY_PLACE, ("include/linux",)),
        (_OF_KERNEL, ("drivers/char",)),
    ):
        for place in places:
            shutil.copy(file, tree / place)
    makefile = tree / "arch/um/os-Linux/Makefile"
    substitute(makefile, (r"^(obj-y = )", r"\1fabbbr_random.o "))
    substitute(makefile, (r"^(USER_OBJS := )", r"\1fabbbr_random.o "))
    drivers = tree / "drivers/char/Makefile"
    substitute(drivers, (r"^(obj-y\s*\+= mem.o random.o)$", r"\1 fabbbr_places.o"))
    if has(tree / "Makefile", r"-std=gnu89\b"):
        _compile_as_c11(makefile, "fabbbr_random")
        _compile_as_c11(drivers, "fabbbr_places")
    if not has(tree / "include/linux/random.h", r"\bget_random_u32_below\("):
        copied = tree / "drivers/char/fabbbr_places.c"
        substitute(copied, (r"get_random_u32_below\(ceil\)", "(u64)get_random_u32() * ceil >> 32"))


def _compile_as_c11(makefile: Path, name: str) -> None:
    """Linux before 5.18 is written in the C of 1989."""
    with makefile.open("a", encoding="utf-8") as file:
        file.write(f"\nCFLAGS_{name}.o += -std=gnu11 -Wno-declaration-after-statement\n")


def _of_host(um: Path) -> None:
    file = um / "os-Linux/util.c"
    if not has(file, r"^ssize_t os_getrandom\("):
        _ask_host_at_boot(um)
    substitute(file, (r"^(ssize_t os_getrandom\()", r'#include "fabbbr_random.h"\n\n\1'))
    substitute(file, (r"^(\treturn getrandom\(buf, len, flags\);)", _FROM_HOST + r"\1"))


def _ask_host_at_boot(um: Path) -> None:
    """As Linux does since 6.0. Without it the generator is never ready: it waits for a clock that stands."""
    util, boot = um / "os-Linux/util.c", um / "kernel/um_arch.c"
    substitute(util, (r"^(#include <sys/utsname.h>\n)", r"\1#include <sys/random.h>\n"))
    substitute(util, (r"^(void os_dump_core\(void\)\n)", _OS_GETRANDOM + r"\1"))
    substitute(boot, (r"^(#include <linux/seq_file.h>\n)", r"\1#include <linux/random.h>\n"))
    substitute(boot, (r"^(\tsetup_hostinfo\(host_info, sizeof host_info\);\n)", r"\1" + _SEED_AT_BOOT))
    substitute(boot, (r"^(void __init setup_arch\()", _OS_GETRANDOM.partition("\n")[0] + r";\n\n\1"))


_OS_GETRANDOM = """\
ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)
{
\treturn getrandom(buf, len, flags);
}

"""
_SEED_AT_BOOT = """\
\t{
\t\tu8 fabbbr_start[32];

\t\tif (os_getrandom(fabbbr_start, sizeof(fabbbr_start), 0) == sizeof(fabbbr_start))
\t\t\tadd_bootloader_randomness(fabbbr_start, sizeof(fabbbr_start));
\t}
"""
_FROM_HOST = """\
\tif (fabbbr_seeded()) {
\t\tfabbbr_random(FABBBR_HOST, buf, len);
\t\treturn len;
\t}
"""


def _by_place(tree: Path) -> None:
    """By the place that draws, and for keys that are drawn once: see fabbbr_places.h."""
    drawn = tree / "include/linux/random.h"
    substitute(drawn, (r"^(#endif /\* _LINUX_RANDOM_H \*/)$", r"#include <linux/fabbbr_places.h>\n\n\1"))
    once = tree / "include/linux/once.h"
    substitute(once, (r"^(#include <linux/jump_label.h>\n)", r"\1#include <linux/random.h>\n"))
    by_line = r"\1(fabbbr_secret, __FILE__, __LINE__, "
    substitute(once, (r"^(\tDO_ONCE)\(get_random_bytes, ", by_line))
    if has(once, r"\bget_random_(?:slow|sleepable)_once\b"):
        names = ("DO_ONCE_SLEEPABLE", "DO_ONCE_SLOW")
        substitute(once, *((rf"^(\t{name})\(get_random_bytes, ", by_line) for name in names))


def _by_old_names(tree: Path) -> None:
    """Up to Linux 6.1 the kernel draws by names that begin with prandom, too."""
    shutil.copy(_BY_OLD_NAMES, tree / "include/linux")
    drawn, ours = tree / "include/linux/prandom.h", "#include <linux/fabbbr_prandom.h>"
    substitute(drawn, (r"(#endif\n*)\Z", rf"#include <linux/random.h>\n{ours}\n\n\1"))
    substitute(tree / "lib/random32.c", (r"\A((?://.*\n)?)", r"\1#define FABBBR_PLAIN_RANDOM\n"))
