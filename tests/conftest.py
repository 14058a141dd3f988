"""Settings shared by all tests."""

import os

from hypothesis import settings

# A busy machine is slow, not wrong; and a build server must give the same answer twice.
settings.register_profile("fabbbr", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("fabbbr")
