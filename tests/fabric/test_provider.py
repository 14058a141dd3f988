"""The provider with the real fablib, each part beside a double of its own."""

import re
import sys
from pathlib import Path

import pytest

BESIDE = Path(__file__).with_name("beside")


@pytest.mark.parametrize(
    ("part", "options"),
    [("walk", ()), ("wrong", ()), ("settings", ()), ("permissions", ("--tag", "none"))],
)
def test_beside_the_double(sandbox, part, options):
    pytest_ = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q")
    outcome = sandbox((*pytest_, str(BESIDE / f"test_{part}.py")), *options)
    assert outcome.status == 0
    assert re.search(r"^\d+ passed in", outcome.output, re.MULTILINE), "some were not run"
