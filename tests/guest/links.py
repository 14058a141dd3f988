"""What a full link carries, and what its queue shows of it."""

import numpy as np

ETHERNET_BYTES = 14
TCP_IP_BYTES = 52
"""IPv4, TCP and its time stamps."""


def ceiling_bps(rate_bps, mtu_bytes=1500):
    """Payload rate of a link that is full of full frames."""
    return rate_bps * (mtu_bytes - TCP_IP_BYTES) / (mtu_bytes + ETHERNET_BYTES)


def of_bottleneck(ran, cell_id=None):
    """The samples of the bottleneck's queue, in order."""
    queues = ran.set.queues(cell_ids=None if cell_id is None else [cell_id])
    return queues[queues["role"] == "bottleneck"].sort_values("t_s").reset_index(drop=True)


def departure_rate_bps(samples):
    """Rate at which bytes left a queue, over those samples between which it was never seen empty."""
    between = samples.diff().iloc[1:]
    standing = np.minimum(
        samples["backlog_packets"].to_numpy()[1:], samples["backlog_packets"].to_numpy()[:-1]
    )
    busy = between[standing > 1]
    assert busy["t_s"].sum() > 0.4, "the queue was never busy for long enough to tell"
    return 8 * busy["sent_bytes"].sum() / busy["t_s"].sum()


def numbers(samples):
    return samples[["t_s", "sent_bytes", "backlog_bytes", "backlog_packets", "drops", "ecn_marks"]]
