"""Machines for the tests of the role."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from qemu.distributions import DISTRIBUTIONS, TESTED, Image, image
from qemu.machine import Machine, up


@pytest.fixture(scope="module", params=TESTED)
def distribution(request) -> Image:
    """The disk of one distribution."""
    return image(DISTRIBUTIONS[request.param])


@pytest.fixture(scope="module")
def machine(distribution) -> Iterator[Machine]:
    """A machine that has never seen the role; the tests of a module go on from each other's state."""
    with up(distribution) as fresh:
        yield fresh
