"""A flow whose time is over while a full queue holds its data ends when that has arrived; nothing spins."""

import pytest
from guest.cells import experiment, run

pytestmark = pytest.mark.guest

SENDING_S = 10
RATES = ("1 Mbit/s", "10 Mbit/s", "100 Mbit/s")
BUFFERS = ("1 BDP", "8 BDP", "64 BDP")


@pytest.fixture(scope="module")
def queues(tmp_path_factory):
    text = experiment(
        "queues",
        path="rate: $rate, rtt: 200 ms, buffer: $buffer",
        flows=f"{{cca: cubic, duration: {SENDING_S} s}}",
        more=f"vary: {{rate: [{', '.join(RATES)}], buffer: [{', '.join(BUFFERS)}]}}",
    )
    return run(tmp_path_factory.mktemp("queues"), text)


def test_every_cell_ends_whole(queues):
    assert queues.summary.failed == {}
    assert queues.wrong() == {}


@pytest.mark.parametrize("rate", RATES)
def test_the_deepest_buffer_outlives_the_flow(queues, rate):
    """Else this would test nothing."""
    (deepest,) = (
        cell.id
        for cell in queues.folder.cells()
        if cell.manifest.cell.axes == {"rate": rate, "buffer": "64 BDP"}
    )
    queue = queues.set.queues(columns=["t_s", "role", "backlog_bytes"], cell_ids=[deepest])
    assert queue[(queue.role == "bottleneck") & (queue.backlog_bytes > 0)].t_s.max() > SENDING_S + 1
