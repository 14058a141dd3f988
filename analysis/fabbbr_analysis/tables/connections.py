"""Which sampled socket is the data connection of which flow, known from its ports alone.

The server of flow i listens on ``SERVER_PORT + i``; stream k of the flow sends from
``DATA_PORT + ports_per_flow × i + k``. iperf3's control connection goes to the same
server from an ephemeral port.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fabbbr.model import Flow
from fabbbr.ports import DATA_PORT, SERVER_PORT, ports_per_flow

_BYTES = {"sender": "bytes_sent", "receiver": "bytes_received"}


def data_connections(sockets: pa.Table, flows: Sequence[Flow]) -> pa.Table:
    """Keep the data connections of ``flows``, with columns ``flow`` and ``side`` added.

    Where a flow has no socket on its data ports at all (an iperf3 that ignores ``--cport``
    for the further streams, a host that rewrites ports), as many connections as it has
    streams are taken, those with most bytes.
    """
    local, peer = _ports(sockets["local_port"]), _ports(sockets["peer_port"])
    sends = _server_index(peer, len(flows)) >= 0
    flow = np.where(sends, _server_index(peer, len(flows)), _server_index(local, len(flows)))
    client_port = np.where(sends, local, peer)
    stream = client_port - DATA_PORT - ports_per_flow(len(flows)) * flow
    # The one connection of a flow of UDP is its control connection.
    streams = np.array([*(0 if each.udp is not None else each.streams for each in flows), 0])
    keep = (flow >= 0) & (stream >= 0) & (stream < streams[flow])
    side = np.where(sends, "sender", "receiver")
    sockets = sockets.append_column("flow", pa.array(flow))
    sockets = sockets.append_column("side", pa.array(side, pa.string()))
    for index in np.setdiff1d(flow[flow >= 0], flow[keep]):
        keep |= _largest(sockets, flow == index, streams=int(streams[index]))
    return sockets.filter(pa.array(keep))


def _ports(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    ports: npt.NDArray[np.int64] = pc.fill_null(column, -1).to_numpy()
    return ports


def _server_index(port: npt.NDArray[np.int64], flows: int) -> npt.NDArray[np.int64]:
    """Flow whose server has this port, -1 for none."""
    index = port - SERVER_PORT
    return np.where((index >= 0) & (index < flows), index, -1)


def _largest(sockets: pa.Table, among: npt.NDArray[np.bool_], *, streams: int) -> npt.NDArray[np.bool_]:
    """Pick the ``streams`` connections of each side with most bytes, in all their samples."""
    mine = sockets.filter(pa.array(among))
    chosen = np.zeros(len(among), dtype=np.bool_)
    local, peer = _ports(sockets["local_port"]), _ports(sockets["peer_port"])
    for side, column in _BYTES.items():
        rows = mine.filter(pc.equal(mine["side"], side))
        totals = rows.group_by(["local_port", "peer_port"]).aggregate([(column, "max")])
        ranked = totals.sort_by([(f"{column}_max", "descending"), ("local_port", "ascending")])
        for pair in ranked.slice(0, streams).to_pylist():
            chosen |= (local == pair["local_port"]) & (peer == pair["peer_port"])
    return chosen & among
