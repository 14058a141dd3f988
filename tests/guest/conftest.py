"""Guests for the tests."""

import pytest

from fabbbr.backends.guest.image.found import found_image


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
