"""Run inside a double of FABRIC, by ``tests/fabric/test_provider.py``."""

from contextlib import closing

import pytest
from fabric_double import DOOR, SOON, heal

from fabbbr.backends.fabric import FabricProvider

if DOOR is None:
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_modifyitems(items):
    """fablib and what it imports warn of what they use."""
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("state")


@pytest.fixture
def provider(folder):
    heal()
    with closing(FabricProvider(folder, patience=SOON)) as provider:
        yield provider
    heal()


@pytest.fixture
def name(request):
    """Of a slice: the test's own, so that nothing of another test is found."""
    return request.node.name.replace("[", "-").replace("]", "").replace("_", "-")[5:60]
