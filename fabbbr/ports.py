"""Which TCP ports a flow has at its two ends: they tell flows apart in everything that is measured."""

from __future__ import annotations

SERVER_PORT = 5201
"""The receiver of flow i listens on SERVER_PORT + i."""
DATA_PORT = 32768
"""From here on flows send. The top bit of a source port tells data from iperf3's control connection, which
injected loss must spare; see docs/decisions."""
_DATA_PORTS = 65_536 - DATA_PORT
MOST_STREAMS = 64
MOST_PROGRAMS = _DATA_PORTS // MOST_STREAMS
"""Flows of one cell that each have programs of their own."""
MOST_FLOWS = 8 * MOST_PROGRAMS
"""Of one cell: their receivers' ports end before those that the kernel chooses of itself."""


def ports_per_flow(flows: int) -> int:
    """From how many ports each of so many flows of a cell may send."""
    return min(_DATA_PORTS // flows, MOST_STREAMS)


def server_port(index: int) -> int:
    """On which flow ``index`` is received."""
    return SERVER_PORT + index


def first_data_port(index: int, *, flows: int) -> int:
    """From which flow ``index`` of so many sends its first stream; the further ones follow."""
    return DATA_PORT + ports_per_flow(flows) * index
