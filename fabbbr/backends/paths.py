"""Nodes that stand on several machines for a while, to be tried: :mod:`fabbbr.agent.paths` on each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from fabbbr.backends.agent import ALONE
from fabbbr.backends.channel import Channel
from fabbbr.backends.machine import agent_on, python
from fabbbr.backends.talk import Talk, talk_with
from fabbbr.errors import BackendError
from fabbbr.record import Record

_FOLDER = "paths"
_STAND_S = 60.0
_GRACE_S = 20.0
"""Around the world and back, besides what a command may take."""


class End(Record):
    """Of a cable, in a node of this machine."""

    node: str
    name: str
    """Of the interface, in the node."""
    mac: str | None = None
    """Of an interface that is there already: the cable's other end is elsewhere."""


class Standing(Record):
    """What stands on one machine."""

    nodes: dict[str, str | None]
    """Node → its address with the length of its prefix; None for a switch."""
    cables: tuple[tuple[End, End], ...] = ()
    """Between nodes of this machine."""
    sides: tuple[End, ...] = ()
    """To other machines."""
    mtu_bytes: int = 1500

    def as_told(self) -> dict[str, Any]:
        """As the agent reads it."""
        return {
            "nodes": [{"name": name, "address": address} for name, address in self.nodes.items()],
            "cables": [{"a": a.model_dump(), "b": b.model_dump()} for a, b in self.cables],
            "sides": [side.model_dump() for side in self.sides],
            "mtu": self.mtu_bytes,
        }


class Answer(Record):
    """Of a command."""

    exit: int
    stdout: str
    stderr: str


class Paths:
    """All machines while their nodes stand."""

    def __init__(self, talks: Mapping[str, tuple[str, Talk]]) -> None:
        self._talks = talks

    def run(self, node: str, argv: Sequence[str], *, timeout_s: float) -> Answer:
        """Run a command in a node, whatever its exit status; BackendError when that was not possible."""
        return self._ask(node, {"argv": list(argv), "timeout_s": timeout_s}, timeout_s)

    def serve(self, node: str, argv: Sequence[str]) -> Answer:
        """Start a command in a node that runs as long as the nodes stand."""
        return self._ask(node, {"argv": list(argv), "serve": True}, 0.0)

    def _ask(self, node: str, command: dict[str, Any], timeout_s: float) -> Answer:
        machine, talk = self._talks[node]
        try:
            return Answer.model_validate(talk.ask({**command, "node": node}, timeout_s + _GRACE_S))
        except ValueError as error:
            message = f"machine {machine}: no answer to {command['argv'][0]}: {error}"
            raise BackendError(message) from error
        except BackendError as error:
            message = f"machine {machine}: {error}"
            raise type(error)(message) from error


@contextmanager
def standing(asked: Mapping[str, Standing], channels: Mapping[str, Channel]) -> Iterator[Paths]:
    """In this block these nodes stand on the machines; afterwards, also when we are killed, nothing is left.

    ``asked`` and ``channels`` are by machine. Raise BackendError, which names the machine, when one cannot
    have them.
    """
    talks: dict[str, tuple[str, Talk]] = {}
    with ExitStack() as stack:
        for machine, what in asked.items():
            try:
                talk = stack.enter_context(_talking(channels[machine]))
                told = talk.ask(what.as_told(), _STAND_S)
            except (BackendError, ValueError) as error:
                message = f"machine {machine}: {error}"
                raise BackendError(message) from error
            if not told["ok"]:
                message = f"machine {machine}: {told['error']}"
                raise BackendError(message)
            talks |= dict.fromkeys(what.nodes, (machine, talk))
        yield Paths(talks)


@contextmanager
def _talking(channel: Channel) -> Iterator[Talk]:
    with (
        agent_on(channel, _FOLDER) as path,
        talk_with(channel, (*ALONE, *python(path, "agent.paths"))) as talk,
    ):
        yield talk
