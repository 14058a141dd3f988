"""Commands about results: pages, figures and tables, claims, what changed."""

from __future__ import annotations

from pathlib import Path

from fabbbr.arguments.completers import figure_names
from fabbbr.arguments.options import (
    Commands,
    add_command,
    add_json,
    add_own_ccas,
    add_selector,
    add_warm_up,
    runs_cells,
)


def add_result_commands(commands: Commands) -> None:
    """Add what reads run folders, and the pages over many of them."""
    _add_scoreboard(commands)
    _add_datasheet(commands)
    report = add_command(commands, "report", "results", "HTML, Markdown and CSV of one or more runs")
    report.add_argument("runs", nargs="+", type=Path, metavar="DIR")
    report.add_argument(
        "--to",
        type=Path,
        metavar="DIR",
        help="where to write (default: the first run; with --warm-up, a folder in it)",
    )
    add_warm_up(report)
    add_json(report)
    _add_paper_commands(commands)
    claims = add_command(
        commands, "claims", "results", "the scoreboard: what the papers claim, judged by your runs"
    )
    claims.add_argument(
        "runs", nargs="*", type=Path, metavar="DIR", help="runs, or folders of runs (default: ./runs)"
    )
    claims.add_argument("--all", action="store_true", help="also list the claims that your runs cannot judge")
    add_json(claims)
    compare = add_command(commands, "compare", "results", "what changed between two runs, with intervals")
    compare.add_argument("runs", nargs=2, type=Path, metavar="DIR")
    compare.add_argument("--to", type=Path, metavar="DIR", help="also write an HTML page there")
    add_json(compare)
    _add_gate(commands)
    verify = add_command(commands, "verify", "results", "check all of a run against its digests")
    verify.add_argument("runs", nargs="+", type=Path, metavar="DIR")
    add_json(verify)


def _add_scoreboard(commands: Commands) -> None:
    scoreboard = add_command(
        commands, "scoreboard", "scoreboard", "run what all published claims need, quickly; one page on them"
    )
    runs_cells(scoreboard)
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
    scoreboard.add_argument(
        "--packets",
        action="store_true",
        help="packet by packet only: nothing again with segmentation offloads, as most papers had them",
    )
    scoreboard.add_argument("--jobs", type=int, metavar="N", help="cells at a time (default: one per CPU)")
    scoreboard.add_argument("--seed", type=int, default=1, metavar="S", help="of all runs (default: 1)")
    add_json(scoreboard)


def _add_datasheet(commands: Commands) -> None:
    datasheet = add_command(
        commands, "datasheet", "datasheet", "a congestion control beside its rivals, on one page"
    )
    runs_cells(datasheet)
    datasheet.add_argument(
        "cca",
        metavar="CCA",
        help="as in experiment files: cubic, bbr3, …; or the name of one that --cca brings",
    )
    add_own_ccas(datasheet)
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
    add_json(datasheet)


def _add_paper_commands(commands: Commands) -> None:
    figure = add_command(
        commands, "figure", "figure", "a figure of a run as a file for a paper; without a name: list them"
    )
    figure.add_argument("run", type=Path, metavar="RUN", help="run folder")
    figure.add_argument("name", nargs="?", metavar="NAME", help="of the figure").completer = figure_names  # type: ignore[attr-defined]
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
    add_selector(figure)
    add_warm_up(figure)
    add_json(figure)
    table = add_command(
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
    add_selector(table)
    add_warm_up(table)
    add_json(table)
    cite = add_command(
        commands,
        "cite",
        "table",
        "BibTeX of a run with its digest, of the paper that it reruns, and of fabbbr",
    )
    cite.add_argument("run", type=Path, metavar="RUN", help="run folder")
    cite.add_argument("--to", type=Path, metavar="FILE", help="a .bib (default: print it)")
    add_json(cite)


def _add_gate(commands: Commands) -> None:
    gate = add_command(
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
    add_json(gate)
