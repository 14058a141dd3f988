import pytest
from bbr.core import Core, Profile


@pytest.fixture(scope="session")
def core(tmp_path_factory) -> Core:
    return Core(tmp_path_factory.mktemp("fab_bbr"))


@pytest.fixture(
    params=(Profile.V2ALPHA, Profile.DRAFT01, Profile.V3), ids=lambda profile: profile.name.lower()
)
def profile(request) -> Profile:
    """Versions 2 and 3; version 1 has tests of its own."""
    return request.param
