"""The questions that fabbbr asks: whether a slice file may run, whether a slice shall be made or go."""

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
    there = attended(arguments)
    return Trust(
        anything=arguments.trust,
        ask=(lambda code: _agreed(console, code)) if there else None,
        note=console.say,
    )


def _agreed(console: Terminal, code: Code) -> bool:
    """Ask on standard error, which is not what a shell writes into a file; silence is no."""
    console.say("The experiment's slice is Python of its own. It will run with all your rights:")
    console.say(("  " + inline(code.place), "bold"))
    console.say(f"  sha256 {code.sha256[:_DIGITS]}…")
    return agreed(console, "Run it, now and whenever this file says the same?")


def attended(arguments: argparse.Namespace) -> bool:
    """Whether somebody is there to answer."""
    return not arguments.json and all(
        stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)
    )


def agreed(console: Terminal, question: str) -> bool:
    """Ask on the terminal; silence is no."""
    console.say(f"{question} [y/N] ", end="")
    answer = sys.stdin.buffer.readline()
    if not answer.endswith(b"\n"):
        console.say("")
    return answer.strip().lower() in (b"y", b"yes")
