"""docs/experiment-file.md: its examples work, and it names every key, CCA and slice."""

import re
from pathlib import Path

import pytest

from fabbbr import bundled
from fabbbr.model import Loss
from fabbbr.plan import definitions, expand
from fabbbr.spec import read
from fabbbr.spec.experiment import CCAS, FlowGroup, Header, LinkSetup, PathSetup, Setup, StepSetup

PAGE = (Path(bundled.__file__).resolve().parent.parent / "docs" / "experiment-file.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_plans(text):
    assert expand.cells(read.parse(text, source="docs"), definitions.load, seed=1)


def test_the_first_example_counts_as_the_text_says():
    sizes = [
        (len(experiment.conditions), experiment.repeat)
        for experiment in (
            read.parse(EXAMPLES[0], source="docs", profile=name) for name in ("default", "quick")
        )
    ]
    assert sizes == [(6, 5), (2, 2)]


@pytest.mark.parametrize("model", [Header, Setup, PathSetup, Loss, LinkSetup, FlowGroup, StepSetup])
def test_every_key_is_described(model):
    keys = {field.alias or name for name, field in model.model_fields.items()}
    assert {key for key in keys if f"`{key}`" not in PAGE} == set()


def test_every_congestion_control_and_slice_is_named():
    named = re.search(r"Congestion controls: `([^`]*)`", PAGE)
    assert set(named[1].split()) == set(CCAS)
    assert {name for name in bundled.names("slices") if f"| `{name}` |" not in PAGE} == set()
