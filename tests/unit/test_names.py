"""A class is known by its name: the analysis gives none twice, nor one that a record of fabbbr has."""

import ast
from collections import Counter
from pathlib import Path

import fabbbr
import fabbbr_analysis

RECORDS = [Path(fabbbr.__file__).parent / "model.py", *Path(fabbbr.__file__).parent.glob("spec/*.py")]


def classes(files):
    """Names of public classes; a Protocol bears the name of what it is a part of."""
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    return [
        node.name
        for node in nodes
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and "Protocol" not in {base.id for base in node.bases if isinstance(base, ast.Name)}
    ]


def test_a_class_of_the_analysis_has_its_name_alone():
    own = classes(Path(fabbbr_analysis.__file__).parent.rglob("*.py"))
    assert len(own) > 50
    assert {name for name, count in Counter(own).items() if count > 1} == set()
    assert set(own) & set(classes(RECORDS)) == set()
