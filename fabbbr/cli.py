"""argv → one subcommand → exit status."""

from __future__ import annotations

import argparse
import importlib
import io
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from fabbbr.backends.providers import DEFAULT as SLICES_ON
from fabbbr.backends.providers import PROVIDERS
from fabbbr.backends.registry import BACKENDS, CLOCKS, DEFAULT
from fabbbr.errors import FabbbrError, OutputError, refusal
from fabbbr.foreign import visible
from fabbbr.streams import ReaderGoneError, Stream, guarded, last_words
from fabbbr.version import __version__

STATUSES = """\
Exit statuses: 0 done; 1 unexpected; 2 usage; 3 a mistake in an experiment file; 4 the plan does not fit; 5 this machine
lacks something; 6 a tool broke; 7 a run folder is damaged or cannot be written, or standard output cannot; 8 raw output
cannot be read; 9 analysis impossible; 10 some cells failed or were not certified;
11 a run is worse than its base; 130 interrupted.
"""  # noqa: E501
UNEXPECTED = 1
INTERRUPTED = 130
_RUNS = ("run", "repeat", "scoreboard")
"""Modules whose commands run cells."""
_KEPT = {
    **dict.fromkeys(_RUNS, "; finished cells are kept, the same command continues"),
    "slice": "; what was reached is remembered, the same command continues",
}
"""Module → what to say to who interrupted it."""
_AGAIN = "; the same command begins anew"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status. The only place that catches FabbbrError."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal without µ and → is shown their numbers
    status = UNEXPECTED
    try:
        with guarded() as output:
            status = _status(argv, output)
    except OutputError as error:
        last_words(visible(f"fabbbr: {error}"))
        return status or error.exit_status
    return status


def _status(argv: Sequence[str] | None, output: Stream | None) -> int:
    kept = _AGAIN
    try:
        arguments = _parsed(argv)
        if output is not None:
            # Nobody reads what a run says: no reason to stop it. What only prints has nothing else to do.
            output.quit_early = arguments.module not in _RUNS
        kept = _KEPT.get(arguments.module, _AGAIN)
        signal.signal(signal.SIGTERM, _as_interrupt)
        module = importlib.import_module(f"fabbbr.commands.{arguments.module}")
        return int(module.main(arguments))
    except SystemExit as left:  # after --help, or a usage error
        return int(left.code or 0)
    except FabbbrError as error:
        print(visible(f"fabbbr: {error}"), file=sys.stderr)  # noqa: T201
        return error.exit_status
    except KeyboardInterrupt:
        print(f"\nfabbbr: interrupted{kept}", file=sys.stderr)  # noqa: T201
        return INTERRUPTED
    except ReaderGoneError:
        return 0
    except (OSError, MemoryError) as error:
        known = refusal(error, "the system refused")
        print(visible(f"fabbbr: {known or f'unexpected: {error}'}"), file=sys.stderr)  # noqa: T201
        return known.exit_status if known is not None else UNEXPECTED


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = build_parser()
    _complete(parser)
    own, words = _apart(sys.argv[1:] if argv is None else argv)
    return parser.parse_args(own, argparse.Namespace(words=words))


def _apart(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What follows ``--`` of ``slice ssh`` is a command for a machine, whatever options stand before it."""
    if tuple(argv[:2]) != ("slice", "ssh") or "--" not in argv:
        return argv, ()
    at = argv.index("--")
    return argv[:at], argv[at + 1 :]


def _as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks for completions; costs nothing otherwise."""
    import os

    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)


class _Parser(argparse.ArgumentParser):
    """Shows the words of the command line in its complaints, and does not let a terminal obey them."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser: argparse.ArgumentParser = _Parser(
        prog="fabbbr",
        description="Evaluate TCP congestion control over a WAN, in virtual time, with evidence to publish.",
        epilog=STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fabbbr {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_machine_commands(commands)
    _add_experiment_commands(commands)
    _add_result_commands(commands)
    _add_slice_commands(commands)
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, module: str, text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(module=module, command=name)
    return parser


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for a program to read")


def _add_machine_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = _command(
        commands, "doctor", "doctor", "what this machine can do, and the remedy for what it cannot"
    )
    _json(doctor)
    _add_guest_commands(
        _command(
            commands,
            "guest",
            "guest",
            "build the guest image (kernel and root file system), show what there is, or run a command in a "
            "guest: as root, in virtual time, with this machine's files and the current folder to write",
        )
    )
    _add_sandbox(commands)
    completion = _command(
        commands, "completion", "completion", "print the lines that switch on shell completion"
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), nargs="?", default="bash")


def _add_guest_commands(guest: argparse.ArgumentParser) -> None:
    actions = guest.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="build the image, unless there is one")
    build.add_argument("--jobs", type=int, metavar="N", help="compile with N processes (default: all CPUs)")
    _json(build)
    _json(actions.add_parser("show", help="what image there is"))
    run = actions.add_parser("run", help="run a command in a guest")
    run.add_argument("argv", nargs="+", metavar="COMMAND", help="after --")
    run.add_argument(
        "--mount", action="append", default=[], type=Path, metavar="DIR", help="may be written too"
    )
    repeat = actions.add_parser(
        "repeat", help="run the finished cells of a run from a testbed in the guest too, and report on both"
    )
    repeat.set_defaults(module="repeat")
    repeat.add_argument("run", type=Path, metavar="DIR", help="run folder; the guest's is made within it")
    repeat.add_argument("--jobs", type=int, metavar="N", help="cells at a time (default: one per CPU)")
    repeat.add_argument("--no-report", action="store_true", help="keep raw files only; report later")
    _json(repeat)


def _add_sandbox(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from fabbbr.sandbox.options import add_options

    sandbox = _command(
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


def _add_experiment_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    experiments = _command(
        commands, "experiments", "experiments", "list the bundled experiments, show one, or copy one to edit"
    )
    experiments.add_argument("action", choices=("list", "show", "copy"), nargs="?", default="list")
    experiments.add_argument("name", nargs="?", help="a bundled experiment").completer = _bundled_names  # type: ignore[attr-defined]
    experiments.add_argument(
        "--to", type=Path, metavar="FILE", help="where copy writes (default: ./NAME.yaml)"
    )
    _json(experiments)
    spec = _command(commands, "spec", "experiments", "print the JSON schema of experiment files")
    spec.add_argument("action", choices=("schema",))
    plan = _command(
        commands, "plan", "plan", "the cells of an experiment, what they will cost, and their commands"
    )
    _add_plan_options(plan)
    plan.add_argument("--commands", action="store_true", help="also print every command that would run")
    _json(plan)
    run = _command(
        commands, "run", "run", "run an experiment, or the cells of it that are missing, and report"
    )
    _add_plan_options(run)
    run.add_argument("--jobs", type=int, metavar="N", help="cells at a time (default: one per CPU)")
    run.add_argument("--out", type=Path, metavar="DIR", help="run folder (default: runs/NAME)")
    _add_until_decided(run)
    run.add_argument("--dry-run", action="store_true", help="print cells and every command, run nothing")
    run.add_argument("--no-report", action="store_true", help="keep raw files only; report later")
    _json(run)


def _add_plan_options(parser: argparse.ArgumentParser) -> None:
    _add_experiment(parser)
    _add_cell_options(parser)
    parser.add_argument(
        "--backend", choices=tuple(BACKENDS), default=DEFAULT, help=f"where to run (default: {DEFAULT})"
    )
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        help="real is slower and less exact, for comparison (default: the first that the backend has)",
    )


def _add_scoreboard(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    scoreboard = _command(
        commands, "scoreboard", "scoreboard", "run what all published claims need, quickly; one page on them"
    )
    scoreboard.add_argument(
        "papers", nargs="*", metavar="PAPER", help="cardwell, hm, knit6, kfoury, ware, fund (default: all)"
    )
    scoreboard.add_argument(
        "--out", type=Path, default=Path("runs/scoreboard"), metavar="DIR", help="default: runs/scoreboard"
    )
    scoreboard.add_argument(
        "--within",
        metavar="TIME",
        help="as 2h: begin nothing that takes longer in all",
    )
    scoreboard.add_argument("--jobs", type=int, metavar="N", help="cells at a time (default: one per CPU)")
    scoreboard.add_argument("--seed", type=int, default=1, metavar="S", help="of all runs (default: 1)")
    _json(scoreboard)


def _add_datasheet(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    datasheet = _command(
        commands, "datasheet", "datasheet", "a congestion control beside its rivals, on one page"
    )
    datasheet.add_argument("cca", metavar="CCA", help="as in experiment files: cubic, bbr3, …")
    datasheet.add_argument(
        "--against", default="cubic,bbr3", metavar="CCA,CCA…", help="rivals (default: cubic,bbr3)"
    )
    datasheet.add_argument(
        "--full",
        dest="profile",
        action="store_const",
        const="default",
        default="quick",
        help="more conditions, longer flows and five repetitions (an hour on two cores)",
    )
    datasheet.add_argument("--repeat", type=int, metavar="N", help="repetitions per condition")
    datasheet.add_argument("--seed", type=int, default=1, metavar="S", help="of all runs (default: 1)")
    datasheet.add_argument("--jobs", type=int, metavar="N", help="cells at a time (default: one per CPU)")
    datasheet.add_argument("--out", type=Path, metavar="DIR", help="default: runs/datasheet-CCA")
    _json(datasheet)


def _add_until_decided(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--until-decided",
        action="store_true",
        help="add repetitions where a claim is undecided: twice as many at each look, until --most",
    )
    parser.add_argument(
        "--most", type=int, metavar="N", help="repetitions at most (default: eight times the first)"
    )


def _add_experiment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiment", metavar="EXP", help="a bundled name or your own YAML file"
    ).completer = (  # type: ignore[attr-defined]
        _experiment_names
    )


def _named_place(text: str) -> tuple[str, Path]:
    name, equals, place = text.partition("=")
    if not (name and equals and place):
        message = f"{text!r}: write it as NAME=PATH, as in mine=./tcp_mine"
        raise argparse.ArgumentTypeError(message)
    return name, Path(place)


def _add_cell_options(parser: argparse.ArgumentParser) -> None:
    """Which cells, wherever they run."""
    profile = parser.add_mutually_exclusive_group()
    profile.add_argument("--quick", dest="profile", action="store_const", const="quick", default="default")
    profile.add_argument("--full", dest="profile", action="store_const", const="full")
    parser.add_argument("--repeat", type=int, metavar="N", help="repetitions per condition")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the whole run (default: 1)")
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a key of the experiment, as in path.rate='1 Gbit/s'; may be given again",
    ).completer = _keys  # type: ignore[attr-defined]
    parser.add_argument(
        "--cca",
        dest="ccas",
        action="append",
        default=[],
        type=_named_place,
        metavar="NAME=PATH",
        help="a congestion control of your own, as in mine=./tcp_mine: the folder of a kernel module, or one "
        ".c file; runs beside those that the experiment compares; may be given again",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let the experiment's own slice file or module run without asking; for this call only",
    )
    parser.add_argument(
        "--only", metavar="SELECTOR", help="axis=value[,axis=value…], or a glob over cell ids"
    ).completer = _axis_values  # type: ignore[attr-defined]


def _add_gate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    gate = _command(
        commands, "gate", "gate", "whether a run is worse than its base, by the exit status: for CI"
    )
    gate.add_argument("base", type=Path, metavar="BASE", help="the run folder to measure against")
    gate.add_argument("--against", type=Path, metavar="RUN", required=True, help="the run to be judged")
    gate.add_argument(
        "--budget",
        type=float,
        default=0.001,
        metavar="P",
        help="chance of any false alarm in the whole table (default: 0.001)",
    )
    gate.add_argument(
        "--tolerance",
        type=float,
        default=0.01,
        metavar="R",
        help="relative change that nobody minds (default: 0.01)",
    )
    _json(gate)


def _add_result_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    _add_scoreboard(commands)
    _add_datasheet(commands)
    report = _command(commands, "report", "results", "HTML, Markdown and CSV of one or more runs")
    report.add_argument("runs", nargs="+", type=Path, metavar="DIR")
    report.add_argument("--to", type=Path, metavar="DIR", help="where to write (default: the first run)")
    _json(report)
    _add_paper_commands(commands)
    claims = _command(
        commands, "claims", "results", "the scoreboard: what the papers claim, judged by your runs"
    )
    claims.add_argument(
        "runs", nargs="*", type=Path, metavar="DIR", help="runs, or folders of runs (default: ./runs)"
    )
    claims.add_argument("--all", action="store_true", help="also list the claims that your runs cannot judge")
    _json(claims)
    compare = _command(commands, "compare", "results", "what changed between two runs, with intervals")
    compare.add_argument("runs", nargs=2, type=Path, metavar="DIR")
    compare.add_argument("--to", type=Path, metavar="DIR", help="also write an HTML page there")
    _json(compare)
    _add_gate(commands)
    verify = _command(commands, "verify", "results", "check all of a run against its digests")
    verify.add_argument("runs", nargs="+", type=Path, metavar="DIR")
    _json(verify)


def _add_paper_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    figure = _command(
        commands, "figure", "figure", "a figure of a run as a file for a paper; without a name: list them"
    )
    figure.add_argument("run", type=Path, metavar="RUN", help="run folder")
    figure.add_argument("name", nargs="?", metavar="NAME", help="of the figure").completer = _figure_names  # type: ignore[attr-defined]
    figure.add_argument(
        "--to", type=Path, metavar="FILE", help="a .pdf, .svg or .png (default: NAME.pdf here)"
    )
    figure.add_argument("--all", type=Path, metavar="DIR", help="write every figure and a page of thumbnails")
    figure.add_argument("--format", choices=("pdf", "svg", "png"), help="of --all (default: pdf)")
    figure.add_argument(
        "--width", default="column", metavar="W", help="as 84mm, column (3.3in, default) or page (7in)"
    )
    figure.add_argument("--height", metavar="H", help="default: what suits the width")
    figure.add_argument("--title", metavar="TEXT", help="above the figure (default: none)")
    figure.add_argument(
        "--caption",
        action="store_true",
        help="write the caption beside the file, as .txt and as LaTeX; without --to: print it",
    )
    _where_cells(figure)
    _json(figure)
    table = _command(
        commands, "table", "table", "the conditions of a run with their intervals, as a table for a paper"
    )
    table.add_argument("run", type=Path, metavar="RUN", help="run folder")
    table.add_argument(
        "--format", choices=("latex", "markdown", "csv"), help="default: by --to, else markdown"
    )
    table.add_argument("--to", type=Path, metavar="FILE", help="a .tex, .md or .csv (default: print it)")
    table.add_argument(
        "--groups", action="store_true", help="a row per group of flows and phase, not per condition"
    )
    table.add_argument("--metrics", metavar="M,M", help="as goodput,rtt (default: the usual ones)")
    table.add_argument("--title", metavar="TEXT", help="of the caption (default: the experiment's)")
    _where_cells(table)
    _json(table)
    cite = _command(
        commands,
        "cite",
        "table",
        "BibTeX of a run with its digest, of the paper that it reruns, and of fabbbr",
    )
    cite.add_argument("run", type=Path, metavar="RUN", help="run folder")
    cite.add_argument("--to", type=Path, metavar="FILE", help="a .bib (default: print it)")
    _json(cite)


def _where_cells(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--where",
        metavar="SELECTOR",
        help="axis=value[,axis=value…], as rtt=100ms, or a glob over cell ids",
    )


def _figure_names(*, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    from fabbbr_analysis.figures import figure_names
    from fabbbr_analysis.runset import RunSet

    try:
        return figure_names(RunSet.open(parsed_args.run))
    except FabbbrError:  # a folder that is no run, or not yet: there is nothing to complete
        return []


def _add_slice_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    slices = _command(commands, "slice", "slice", "make a slice of a testbed, see it, renew it, give it back")
    actions = slices.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    _add_slice_create(actions)
    _add_slice_run(actions)
    show = _slice_action(actions, "show", "how a slice is, its machines and what was measured")
    _where(show)
    _json(show)
    every = actions.add_parser(
        "list", help="the slices that are remembered", description="The slices that are remembered."
    )
    _json(every)
    renew = _slice_action(actions, "renew", "move the end of a slice's lease")
    until = renew.add_mutually_exclusive_group(required=True)
    until.add_argument("--for", dest="span", metavar="TIME", help="so long from now, as 24h")
    until.add_argument("--until", metavar="WHEN", help="as 2026-11-25T12:00, local unless it has a zone")
    _where(renew)
    _json(renew)
    ssh = _slice_action(
        actions, "ssh", "open a shell on a machine of a slice; after --: run a command there, as root"
    )
    ssh.add_argument("machine", nargs="?", help="default: the only one")
    _where(ssh)
    _json(ssh)
    teardown = _slice_action(actions, "teardown", "give a slice back and wait until it is gone")
    teardown.add_argument("--yes", action="store_true", help="do not ask")
    _where(teardown)
    _json(teardown)


def _slice_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.add_argument("name", metavar="NAME", help="of the slice").completer = _slice_names  # type: ignore[attr-defined]
    return parser


def _where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend", choices=tuple(PROVIDERS), help="where to look for a slice that is not remembered"
    )
    parser.add_argument(
        "--inventory", type=Path, metavar="FILE", help="of --backend ssh: the hosts that there are"
    )


def _add_slice_create(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    create = _slice_action(
        actions, "create", "reserve a slice, or go on where that was interrupted; prepare and measure it"
    )
    create.add_argument(
        "--slice",
        dest="definition",
        required=True,
        metavar="DEF",
        help="a bundled definition or your own Python file",
    ).completer = _definition_names  # type: ignore[attr-defined]
    create.add_argument(
        "--param",
        dest="parameters",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of the definition; may be given again",
    )
    create.add_argument(
        "--backend", choices=tuple(PROVIDERS), default=SLICES_ON, help=f"default: {SLICES_ON}"
    )
    create.add_argument(
        "--inventory", type=Path, metavar="FILE", help="of --backend ssh: the hosts that there are"
    )
    where = create.add_mutually_exclusive_group()
    where.add_argument(
        "--sites",
        metavar="A,B",
        help="for the places of the definition in their order, one for all, place=SITE, or random",
    )
    where.add_argument(
        "--rtt", metavar="TIME", help="the two sites whose published round trip is nearest, as 40ms"
    )
    create.add_argument("--avoid", metavar="A,B", help="sites that --rtt and random leave out")
    create.add_argument("--seed", type=int, default=1, metavar="S", help="of random sites (default: 1)")
    create.add_argument(
        "--nic",
        metavar="KIND",
        default="NIC_Basic",
        help="default: NIC_Basic, a share of a card; or NIC_ConnectX_5, _6, _7_100, _7_400",
    )
    create.add_argument(
        "--network",
        choices=("L2STS", "L2PTP", "FABNetv4"),
        default="L2STS",
        help="between sites (default: L2STS, the only one whose frames can be a job's)",
    )
    create.add_argument(
        "--size", metavar="SIZE", default="default", help="default (2x8x10), knit6 (16x32x10), or CORESxGBxGB"
    )
    create.add_argument("--image", metavar="IMAGE", default="default_ubuntu_24")
    create.add_argument("--lease", metavar="TIME", default="24h", help="default: 24h")
    create.add_argument(
        "--skip-prepare", action="store_true", help="leave the machines as they are, without Ansible"
    )
    create.add_argument(
        "--prepare-with",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a variable of the playbook prepare.yml, as in fabbbr_ccas=[bbr2]; may be given again",
    )
    create.add_argument(
        "--trust",
        action="store_true",
        help="let a definition of your own, which is Python, run without asking",
    )
    create.add_argument("--yes", action="store_true", help="do not ask before it is reserved")
    _json(create)


def _add_slice_run(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = _slice_action(
        actions, "run", "run an experiment on the machines of a slice, or the cells of it that are missing"
    )
    run.set_defaults(module="run", dry_run=False, clock=None, jobs=None)
    _add_experiment(run)
    _add_cell_options(run)
    run.add_argument(
        "--emulate",
        choices=("rtt",),
        help="rtt: netem adds what the slice's round trips lack; else cells must ask for what is there",
    )
    _add_until_decided(run)
    run.add_argument(
        "--no-guest",
        dest="compares",
        action="store_false",
        help="do not run the same cells in the guest too, which shows what the testbed adds",
    )
    run.add_argument("--out", type=Path, metavar="DIR", help="run folder (default: runs/EXP-NAME)")
    run.add_argument("--no-report", action="store_true", help="keep raw files only; report later")
    _json(run)


def _slice_names(**_: object) -> list[str]:
    from fabbbr.slice import state

    return list(state.names())


def _definition_names(**_: object) -> list[str]:
    from fabbbr import bundled

    return list(bundled.names("slices"))


def _experiment_names(prefix: str, **_: object) -> list[str]:
    from fabbbr.commands.completion import experiments

    return experiments(prefix)


def _axis_values(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    from fabbbr.commands.completion import selectors

    return selectors(prefix, parsed_args.experiment)


def _keys(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    from fabbbr.commands.completion import keys

    return keys(prefix, parsed_args.experiment)


def _bundled_names(**_: object) -> list[str]:
    from fabbbr import bundled

    return list(bundled.names("experiments"))


if __name__ == "__main__":
    sys.exit(main())
