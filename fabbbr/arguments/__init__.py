"""The words of the command line: every command and its options. Nothing here carries one out."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from fabbbr.arguments.experiments import add_experiment_commands
from fabbbr.arguments.machine import add_machine_commands
from fabbbr.arguments.results import add_result_commands
from fabbbr.arguments.slices import add_slice_commands
from fabbbr.foreign import visible
from fabbbr.suggest import did_you_mean
from fabbbr.version import __version__

STATUSES = """\
Exit statuses: 0 done; 1 unexpected; 2 usage; 3 a mistake in an experiment file; 4 the plan does not fit; 5 this machine
lacks something; 6 a tool broke; 7 a run folder is damaged or cannot be written, or standard output cannot; 8 raw output
cannot be read; 9 analysis impossible; 10 some cells failed or were not certified;
11 a run is worse than its base; 130 interrupted.
"""  # noqa: E501


class _Parser(argparse.ArgumentParser):
    """Shows the words of the command line in its complaints, and does not let a terminal obey them."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - as argparse's
        """Have a command refuse what it does not know, with its own usage; argparse has the program do it."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown and self._subparsers is None:
            options = [word for action in self._actions for word in action.option_strings]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{did_you_mean(unknown[0], options)}")
        return found, unknown


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
    add_machine_commands(commands)
    add_experiment_commands(commands)
    add_result_commands(commands)
    add_slice_commands(commands)
    return parser
