"""Settings shared by all tests."""

import os
import signal

from hypothesis import settings

# A busy machine is slow, not wrong; and a build server must give the same answer twice.
settings.register_profile("fabbbr", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("fabbbr")

# A shell that starts a command in the background lets it ignore Ctrl-C, and so do all its children: tests
# that press it would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
