"""The questions that fabbbr asks: may a slice file run, shall the image be built, a slice be made, or go."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fabbbr.commands.terminal import Terminal
from fabbbr.foreign import inline, listed
from fabbbr.trust import Code, Kind, Trust

_DIGITS = 16
"""Of a digest, for people to compare."""


_WILL_RUN: dict[Kind, str] = {
    "slice": "The experiment's slice is Python of its own. It will run with all your rights:",
    "module": "The experiment brings a kernel module of its own. Its Makefile will run with all your rights, "
    "its code in the kernel of the place:",
}


def attended(arguments: argparse.Namespace) -> bool:
    """Whether there is somebody to answer: people see standard error, whatever a shell does with the rest."""
    streams = (sys.stdin, sys.stderr)
    return not arguments.json and all(stream is not None and stream.isatty() for stream in streams)


def trust_of(arguments: argparse.Namespace) -> Trust:
    """What the command line says: ``--trust``, or ask where there is somebody to answer."""
    console = Terminal(stderr=True)
    return Trust(
        anything=arguments.trust,
        ask=(lambda code: _agreed(console, code)) if attended(arguments) else None,
        note=console.say,
    )


def _agreed(console: Terminal, code: Code) -> bool:
    console.say(_WILL_RUN[code.kind])
    console.say(("  " + inline(code.place), "bold"))
    console.say(f"  sha256 {code.sha256[:_DIGITS]}…")
    return agreed(console, "Run it, now and whenever it says the same?")


def build_now(minutes: int, cpus: int, folder: Path) -> bool:
    """Ask whether to build the guest image, which takes ``minutes``."""
    console = Terminal(stderr=True)
    console.say("Cells run in the guest image, and there is none yet. To build it, once, takes about")
    console.say(f"{minutes} minutes with {cpus} CPUs; it will be below {folder}.")
    console.say("(Ready made, and without a compiler: pip install fabbbr-guest.)")
    return agreed(console, "Build it now?")


def build_kernels_now(names: Sequence[str], minutes: int, cpus: int) -> bool:
    """Ask whether to build the kernels that an experiment names, each of which takes ``minutes``."""
    console = Terminal(stderr=True)
    each, them = (" each", "them") if len(names) > 1 else ("", "it")
    console.say(
        f"The guest has no kernel {listed(names)} yet, which the experiment names. To build {them}, once,"
    )
    console.say(f"takes about {minutes} minutes{each} with {cpus} CPUs.")
    return agreed(console, f"Build {them} now?")


def agreed(console: Terminal, question: str) -> bool:
    """Ask on standard error, which is not what a shell writes into a file; silence is no."""
    console.say(f"{question} [y/N] ", end="")
    answer = sys.stdin.buffer.readline()
    if not answer.endswith(b"\n"):
        console.say("")
    return answer.strip().lower() in (b"y", b"yes")
