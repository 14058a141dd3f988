"""Settings shared by all tests."""

import os
import signal

import pytest
from hypothesis import settings

from fabbbr.backends.allotted import cpus_at_once

# A busy machine is slow, not wrong; and a build server must give the same answer twice.
settings.register_profile("fabbbr", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("fabbbr")

# A shell that starts a command in the background lets it ignore Ctrl-C, and so do all its children: tests
# that press it would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests that share one thing of a machine come one after the other: with this many workers they are the
# last to end, so that more would only wait.
_MOST_WORKERS = 12


@pytest.fixture(scope="session", autouse=True)
def state_of_their_own(tmp_path_factory):
    """What tests remember of slices and of trust is not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state_of_tests")))
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests of a file share a worker, and so what the file prepares, unless it names others that share it."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


@pytest.hookimpl
def pytest_xdist_auto_num_workers():
    """For ``-n auto`` one worker more than CPUs may be used: many tests wait for programs in real time."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return min(_MOST_WORKERS, cpus_at_once() + 1)
