"""Modules of fabbbr's BBRv3 with one line changed each, to see whether a datasheet shows what was changed.

Usage: python -m benchmarks.mutants FOLDER

Writes ``mut_beta`` (0.9 of the bounds is kept after a loss, and not 0.7), ``mut_headroom`` (none is left for
others) and ``mut_probertt`` (ProbeRTT is never entered) into FOLDER, and prints the command that makes their
datasheet.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

HOME = Path(__file__).parent.parent
sys.path[:0] = [str(HOME), str(HOME / "analysis")]

from fabbbr.backends.guest.kernel.edits import bbr
from fabbbr.backends.guest.kernel.edits.place import substitute

_CORE, _MODULE = "fab_bbr_core.c", "fab_bbr_module.c"
_LITERALLY = """\\1{
\\t\\t.name = "%s", .owner = THIS_MODULE, .flags = TCP_CONG_NON_RESTRICTED, .init = fab_open_bbr3,
\\t\\t.release = fab_release, .cong_control = FAB_CONG_CONTROL, .ssthresh = fab_ssthresh,
\\t\\t.set_state = fab_set_state, .undo_cwnd = fab_undo_cwnd, FAB_ON_TX_START,
\\t\\t.min_tso_segs = fab_min_tso_segs, .get_info = fab_get_info,
\\t},
"""
"""Its name stands in the struct: by that a module is known before it is built."""
MUTANTS = {
    "mut_beta": (
        r"(FAB_DIV64\(value, 10\) \* )7( \+ FAB_DIV64\(\(value - FAB_DIV64\(value, 10\) \* 10\) \* )7,",
        r"\g<1>9\g<2>9,",
    ),
    "mut_headroom": (
        r"volume > headroom \? volume - headroom : 0, FAB_MIN_PIPE_CWND",
        "headroom ? volume : 0, FAB_MIN_PIPE_CWND",
    ),
    "mut_probertt": (r"b->state != FAB_PROBE_RTT && b->probe_rtt_expired && !b->idle_restart", "false"),
}


def write(folder: Path, name: str) -> None:
    """Write the module ``name`` into a folder of that name."""
    to = folder / name
    to.mkdir(parents=True)
    for source in bbr.sources():
        shutil.copy(source, to)
    substitute(to / _CORE, MUTANTS[name])
    registered = r"(\bfab_ops\[\] __read_mostly = \{\n)(?:\tFAB_CONGESTION_OPS\(.*\),\n)+"
    substitute(to / _MODULE, (registered, _LITERALLY % name))
    recipe = to / "Kbuild"
    substitute(recipe, (r"^(obj-\$\(FAB_BBR_AS\) \+= )fab_bbr\.o$", rf"\1{name}.o"))
    substitute(recipe, (r"^fab_bbr-y ", f"{name}-y "))


def main() -> int:
    """Write all, and say what to do with them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    for name in MUTANTS:
        write(folder, name)
    first, *others = MUTANTS
    own = " ".join(f"--cca {name}={folder / name}" for name in MUTANTS)
    print(f"fabbbr datasheet {first} {own} --against bbr3,{','.join(others)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
