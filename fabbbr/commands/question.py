"""The one question that fabbbr asks: whether a slice file may run."""

from __future__ import annotations

import argparse
import sys

from fabbbr.commands.terminal import Terminal
from fabbbr.foreign import inline
from fabbbr.trust import Code, Trust

_DIGITS = 16
"""Of a digest, for people to compare."""


def trust_of(arguments: argparse.Namespace) -> Trust:
    """What the command line says: ``--trust``, or ask where there is somebody to answer."""
    console = Terminal(stderr=True)
    attended = not arguments.json and all(
        stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)
    )
    return Trust(
        anything=arguments.trust,
        ask=(lambda code: _agreed(console, code)) if attended else None,
        note=console.say,
    )


def _agreed(console: Terminal, code: Code) -> bool:
    """Ask on standard error, which is not what a shell writes into a file; silence is no."""
    console.say("The experiment's slice is Python of its own. It will run with all your rights:")
    console.say(("  " + inline(code.place), "bold"))
    console.say(f"  sha256 {code.sha256[:_DIGITS]}…")
    console.say("Run it, now and whenever this file says the same? [y/N] ", end="")
    answer = sys.stdin.buffer.readline()
    if not answer.endswith(b"\n"):
        console.say("")
    return answer.strip().lower() in (b"y", b"yes")
