"""argv → one subcommand → exit status."""

from __future__ import annotations

import argparse
import importlib
import io
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from fabbbr.arguments import build_parser
from fabbbr.errors import FabbbrError, OutputError, refusal, unloadable
from fabbbr.foreign import visible
from fabbbr.streams import ReaderGoneError, Stream, guarded, last_words

UNEXPECTED = 1
INTERRUPTED = 130


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
    stands = "nothing was begun"
    try:
        arguments = _parsed(argv)
        if output is not None:
            # Nobody reads what a run says: no reason to stop it. What only prints has nothing else to do.
            output.quit_early = not arguments.runs_cells
        stands = arguments.interrupted
        signal.signal(signal.SIGTERM, _as_interrupt)
        module = importlib.import_module(f"fabbbr.commands.{arguments.module}")
        return int(module.main(arguments))
    except SystemExit as left:  # after --help, or a usage error
        return int(left.code or 0)
    except FabbbrError as error:
        print(visible(f"fabbbr: {error}"), file=sys.stderr)  # noqa: T201
        return error.exit_status
    except KeyboardInterrupt:
        print(f"\nfabbbr: interrupted; {stands}", file=sys.stderr)  # noqa: T201
        return INTERRUPTED
    except ReaderGoneError:
        return 0
    except (OSError, MemoryError, ImportError) as error:
        return _stopped_by(error)


def _stopped_by(error: OSError | MemoryError | ImportError) -> int:
    """Say what this machine refuses or lacks, with the remedy where one is known."""
    if isinstance(error, ImportError):
        known = unloadable(error)
        if known is None:
            raise error
    else:
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


if __name__ == "__main__":
    sys.exit(main())
