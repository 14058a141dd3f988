"""Commands about this machine: what it can do, the guest image, the double of FABRIC."""

from __future__ import annotations

import argparse
from pathlib import Path

from fabbbr.arguments.completers import cca_names, kernel_names
from fabbbr.arguments.options import Commands, add_command, add_json, runs_cells


def add_machine_commands(commands: Commands) -> None:
    """Add ``doctor``, ``guest``, ``kernel``, ``cca``, ``sandbox``, ``completion``."""
    doctor = add_command(
        commands, "doctor", "doctor", "what this machine can do, and the remedy for what it cannot"
    )
    add_json(doctor)
    _add_guest_commands(
        add_command(
            commands,
            "guest",
            "guest",
            "build the guest image (kernel and root file system), show what there is, or run a command in a "
            "guest: as root, in virtual time, with this machine's files and the current folder to write",
        )
    )
    _add_kernel_commands(commands)
    _add_cca_commands(commands)
    _add_sandbox(commands)
    completion = add_command(
        commands, "completion", "completion", "print the lines that switch on shell completion"
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), nargs="?", default="bash")


def _add_guest_commands(guest: argparse.ArgumentParser) -> None:
    actions = guest.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="build the image, unless there is one")
    build.add_argument("--jobs", type=int, metavar="N", help="compile with N processes (default: all CPUs)")
    add_json(build)
    add_json(actions.add_parser("show", help="what image there is"))
    run = actions.add_parser("run", help="run a command in a guest")
    run.add_argument("argv", nargs="+", metavar="COMMAND", help="after --")
    run.add_argument(
        "--mount", action="append", default=[], type=Path, metavar="DIR", help="may be written too"
    )
    repeat = actions.add_parser(
        "repeat", help="run the finished cells of a run from a testbed in the guest too, and report on both"
    )
    repeat.set_defaults(module="repeat")
    runs_cells(repeat)
    repeat.add_argument("run", type=Path, metavar="DIR", help="run folder; the guest's is made within it")
    repeat.add_argument("--jobs", type=int, metavar="N", help="cells at a time (default: one per CPU)")
    repeat.add_argument("--no-report", action="store_true", help="keep raw files only; report later")
    add_json(repeat)


def _add_kernel_commands(commands: Commands) -> None:
    kernel = add_command(
        commands,
        "kernel",
        "kernel",
        "build another Linux for the guest, which experiments then name or vary: kernel: 6.1",
    )
    actions = kernel.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="build one, in place of one that has its name")
    build.add_argument(
        "--source",
        required=True,
        metavar="TREE",
        help="a series that your distribution has as a source package (6.1), a kernel tree, or a tarball",
    )
    build.add_argument("--commit", metavar="C", help="of a git tree; default: the tree as it is")
    build.add_argument(
        "--patch", dest="patches", action="append", default=[], type=Path, metavar="F",
        help="laid on the source with patch -p1; may be given again",
    )  # fmt: skip
    build.add_argument("--name", metavar="NAME", help="default: that of the series, the folder or the file")
    build.add_argument("--jobs", type=int, metavar="N", help="compile with N processes (default: all CPUs)")
    build.add_argument(
        "--if-missing", action="store_true", help="leave one that has this name as it is, unless it is stale"
    )
    add_json(build)
    add_json(actions.add_parser("list", help="what kernels there are"))
    remove = actions.add_parser("remove", help="remove one")
    remove.add_argument("name", metavar="NAME").completer = kernel_names  # type: ignore[attr-defined]


def _add_cca_commands(commands: Commands) -> None:
    cca = add_command(
        commands, "cca", "cca", "list the congestion controls that there are, or copy one to change it"
    )
    actions = cca.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_json(actions.add_parser("list", help="what there is, and whose"))
    copy = actions.add_parser(
        "copy", help="write the sources of one as a kernel module that registers another name"
    )
    copy.add_argument("cca", metavar="CCA", help="as experiment files call it: bbr3, cubic").completer = (  # type: ignore[attr-defined]
        cca_names
    )
    copy.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="its name without tcp_ is what the copy registers (default: tcp_my_CCA)",
    )
    copy.add_argument(
        "--profile", metavar="PROFILE", help="of fabbbr's BBR: v1, v1cap3, v2alpha, draft01, v3"
    )


def _add_sandbox(commands: Commands) -> None:
    from fabbbr.sandbox.options import add_options

    sandbox = add_command(
        commands, "sandbox", "sandbox", "run a command beside a double of the FABRIC testbed on this machine"
    )
    sandbox.add_argument(
        "--on",
        choices=("host", "guest"),
        default="guest",
        help="guest: a kernel of its own, in virtual time, without root (default); host: this one, as root",
    )
    add_options(sandbox)
    sandbox.add_argument("argv", nargs="*", metavar="COMMAND", help="after --; default on the host: a shell")
