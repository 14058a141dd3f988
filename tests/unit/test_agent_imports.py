"""The agent runs where there is only Python: it imports the standard library, itself, and Mininet."""

import ast
import sys
from pathlib import Path

import pytest

import fabbbr

AGENT = Path(fabbbr.__file__).parent / "agent"
ALLOWED = sys.stdlib_module_names | {"mininet"}


def imported(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module


@pytest.mark.parametrize("file", sorted(AGENT.glob("*.py")), ids=lambda file: file.name)
def test_only_the_standard_library(file):
    assert {name.partition(".")[0] for name in imported(file)} <= ALLOWED
