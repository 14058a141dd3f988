"""Samples of real sockets of this machine, on loopback."""

import shutil
import socket
from contextlib import nullcontext
from pathlib import Path

import pytest

from fabbbr.agent.sampling import SocketSampler

_SAMPLES = 300


class _Here:
    """Name spaces that are all this machine's own."""

    def inside(self, node):
        return nullcontext()


@pytest.mark.skipif(not shutil.which("ss"), reason="no ss")
def test_a_socket_is_printed_once_for_each_sample_and_memory_stays_small(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address) as client, server.accept()[0]:
            sampler = SocketSampler(_Here(), "h1", str(tmp_path))
            for number in range(_SAMPLES):
                sampler.sample(number * 0.1)
            # Two connections of half a kilobyte, 300 times: most of it is out of memory before the end.
            assert (tmp_path / "sockets.h1.txt.dump").stat().st_size > 100_000
            port = client.getsockname()[1]
            sampler.finish()
    lines = (tmp_path / "sockets.h1.txt").read_text().splitlines()
    assert sum(f"127.0.0.1:{port}" in line.split() for line in lines) == 2 * _SAMPLES
    times = [line.split() for line in (tmp_path / "sockets.h1.times").read_text().splitlines()]
    assert [float(time) for time, _ in times] == [pytest.approx(number * 0.1) for number in range(_SAMPLES)]
    assert sum(int(count) for _, count in times) == len(lines)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".dump"] == []
