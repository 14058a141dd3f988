"""Guests for the tests: each worker keeps to one CPU, so that no two guests share one."""

import os
import re

import pytest

from fabbbr.backends.guest.kernel.build import cached_kernel


@pytest.fixture(scope="module", autouse=True)
def own_cpu():
    """Confine this worker, and with it its guests, to a CPU of its own."""
    every = sorted(os.sched_getaffinity(0))
    worker = re.fullmatch(r"gw(\d+)", os.environ.get("PYTEST_XDIST_WORKER", ""))
    if worker:
        os.sched_setaffinity(0, {every[int(worker[1]) % len(every)]})
    yield
    os.sched_setaffinity(0, every)


@pytest.fixture(scope="session", autouse=True)
def kernel():
    """The cached guest kernel."""
    found = cached_kernel()
    if found is None:
        pytest.skip("the guest kernel is not built: fabbbr kernel build")
    return found
