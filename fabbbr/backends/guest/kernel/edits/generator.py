"""The kernel's own generator of random numbers: seeded, all that it gives comes of `fabbbr_random.h`.

It was written anew for Linux 5.18, and so were its stable series of that spring; what a tree has decides.
"""

from __future__ import annotations

from pathlib import Path

from fabbbr.backends.guest.kernel.edits.place import has, substitute


def seed(random: Path) -> None:
    """Give the kernel and its processes their own streams, which the ioctl RNDRESEEDCRNG starts anew."""
    substitute(random, (r"^(#define pr_fmt\(fmt\) .*\n)", r"\1#define FABBBR_PLAIN_RANDOM\n"))
    substitute(random, (r"^(#include <linux/ptrace.h>\n)", r"\1#include <linux/fabbbr_random.h>\n"))
    if has(random, r"^static void crng_make_state\("):
        _todays(random)
    else:
        _of_before(random)


def _todays(random: Path) -> None:
    _reseeding(random)
    substitute(random, (r"(\tif \(!len\)\n\t\treturn;\n)(?=\n\tfirst_block_len)", r"\1" + _FOR_KERNEL))
    substitute(
        random,
        (
            r"(static void crng_make_state\([^{]*\{\n(?:\t.*\n)*?)(\n\tBUG_ON\(random_data_len > 32\);\n)",
            r"\1\2" + _FOR_PROCESSES,
        ),
    )


def _reseeding(random: Path) -> None:
    """Only who asks gets other numbers: Linux itself calls crng_reseed for more reasons, one of them at boot.

    The generation tells the batches, from which single words are drawn, that they are out of date.
    """
    function = r"^(static void crng_reseed\((?:void|struct work_struct \*work)\)\n\{\n(?:\t.*\n)+)"
    substitute(random, (function, r"\1" + _NOT_BY_ITSELF))
    asked = r"(RNDRESEEDCRNG:(?:\n\t\t.*)+?\n)(\t\tcrng_reseed\((?:NULL)?\);\n)"
    substitute(random, (asked, r"\1" + _IF_ASKED))


_NOT_BY_ITSELF = """\

\tif (fabbbr_seeded() && crng_ready())
\t\treturn;
"""
_IF_ASKED = """\
\t\tif (fabbbr_seeded()) {
\t\t\tfabbbr_seed_anew();
\t\t\tWRITE_ONCE(base_crng.generation, base_crng.generation + 1);
\t\t}
\\2"""
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


def _of_before(random: Path) -> None:
    """Every number came of blocks, some of which waited in batches; seeded, nothing waits for entropy."""
    substitute(random, (r"^(#define crng_ready\(\) )(.*)$", r"\1(fabbbr_seeded() || \2)"))
    substitute(
        random,
        (r"(GRND_INSECURE\) && )\(crng_init == 0\)", r"\1!fabbbr_seeded() && (crng_init == 0)"),
        (r"(GRND_INSECURE\) && !crng_ready\(\))", r"\1"),
    )
    substitute(random, (_opening(r"static void _extract_crng"), r"\1" + _BLOCK_FOR_KERNEL))
    substitute(random, (_opening(r"static void _crng_backtrack_protect"), r"\1" + _NOT_IF_SEEDED))
    substitute(
        random,
        (
            r"(^static ssize_t extract_crng_user\([^{]*\{\n(?:.*\n)*?)(\t\textract_crng\(tmp\);\n)",
            r"\1" + _BLOCK_FOR_PROCESSES,
        ),
    )
    for width in ("32", "64"):
        word = rf"(^u{width} get_random_u{width}\(void\)\n\{{\n(?:\t.*\n)+\n)"
        substitute(random, (word, r"\1" + _WORD_FOR_KERNEL))
    asked = r"(RNDRESEEDCRNG:\n\t\tif \(!capable\(CAP_SYS_ADMIN\)\)\n\t\t\treturn -EPERM;\n)"
    substitute(random, (asked, r"\1" + _IF_ASKED_BEFORE))


def _opening(function: str) -> str:
    """Where the statements of a function begin: after its declarations, of which each is a line."""
    return rf"(^{function}\([^;{{]*\{{\n(?:\t[\w\t *,]+;\n)+)"


_BLOCK_FOR_KERNEL = """\

\tif (fabbbr_seeded()) {
\t\tfabbbr_random(FABBBR_KERNEL, out, CHACHA_BLOCK_SIZE);
\t\treturn;
\t}
"""
_NOT_IF_SEEDED = """\

\tif (fabbbr_seeded())
\t\treturn;
"""
_BLOCK_FOR_PROCESSES = """\
\t\tif (fabbbr_seeded())
\t\t\tfabbbr_random(FABBBR_PROCESSES, tmp, CHACHA_BLOCK_SIZE);
\t\telse
\t\t\textract_crng(tmp);
"""
_WORD_FOR_KERNEL = """\
\tif (fabbbr_seeded()) {
\t\tfabbbr_random(FABBBR_KERNEL, &ret, sizeof(ret));
\t\treturn ret;
\t}

"""
_IF_ASKED_BEFORE = """\
\t\tif (fabbbr_seeded()) {
\t\t\tfabbbr_seed_anew();
\t\t\treturn 0;
\t\t}
"""
