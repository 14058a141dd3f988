"""Guests for the tests: each worker keeps to one CPU, so that no two guests share one."""

import os
import re

import pytest

from fabbbr.backends.guest.image.found import found_image


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
def image():
    """The guest image."""
    found = found_image()
    if found is None:
        pytest.skip("there is no guest image: fabbbr guest build")
    return found


@pytest.fixture(scope="session")
def kernel(image):
    """Its kernel."""
    return image.kernel
