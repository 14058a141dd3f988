"""The first program of a sandbox: what becomes of its end."""

import subprocess
import sys

import pytest

FIRST = """
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.sandbox import inside

def run(settings, command):
    {does}

inside._run = run
raise SystemExit(inside._as_first_process(None, ()))
"""


@pytest.mark.parametrize(
    ("does", "status", "said"),
    [
        ("return 7", 7, ""),
        ("raise EnvironmentUnfitError('no ip')", 5, "fabbbr: no ip"),
        ("import a_module_that_there_is_not", 1, "ModuleNotFoundError: No module named 'a_module_that"),
    ],
)
def test_its_end_is_told_even_where_nobody_expected_it(does, status, said):
    """A library that could not be imported any more ended it without a word."""
    words = (sys.executable, "-c", FIRST.format(does=does))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert said in done.stderr
