"""docs/experiment-file.md: its examples work, and it names every key, CCA and slice."""

import itertools
import re
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import TypeAdapter
from pydantic_core import PydanticUndefined

from fabbbr import bundled
from fabbbr.model import AckAggregation, Loss, Video
from fabbbr.plan import definitions, expand, link_traces, step_files
from fabbbr.plan.beside import Beside
from fabbbr.spec import read
from fabbbr.spec.experiment import (
    CCAS,
    ArrivalProcess,
    FlowGroup,
    Header,
    LinkSetup,
    PathSetup,
    ReverseSetup,
    Setup,
    SizeDistribution,
    StepSetup,
)

TRACE = Path(bundled.__file__).resolve().parent.parent / "experiments" / "lte_like.up"
FOLLOWED = link_traces.parse(TRACE.read_text(encoding="ascii"), source=TRACE.name)
PAGE = (Path(bundled.__file__).resolve().parent.parent / "docs" / "experiment-file.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)

(TABLE,) = re.findall(r"```csv\n(.*?)```", PAGE, flags=re.DOTALL)
FLIGHT = step_files.parse(TABLE, source="flight.csv")


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_plans(text):
    beside = Beside(traces={TRACE.name: FOLLOWED}, step_files={"flight.csv": FLIGHT})
    assert expand.cells(read.parse(text, source="docs"), definitions.load, seed=1, beside=beside)


def test_the_first_example_counts_as_the_text_says():
    sizes = [
        (len(experiment.conditions), experiment.repeat)
        for experiment in (
            read.parse(EXAMPLES[0], source="docs", profile=name) for name in ("default", "quick")
        )
    ]
    assert sizes == [(6, 5), (2, 2)]


@pytest.mark.parametrize(
    ("section", "models"),
    [
        ("## Top level", [Header, Setup]),
        ("## `path`", [PathSetup]),
        ("**`reverse`**", [ReverseSetup]),
        ("**`loss`**", [Loss]),
        ("**`ack_aggregation`**", [AckAggregation]),
        ("## `flows`", [FlowGroup]),
        ("### Flows that come", [ArrivalProcess, SizeDistribution]),
        ("### Video", [Video]),
        ("## `links` and `steps`", [LinkSetup, StepSetup]),
    ],
)
def test_every_key_is_described_in_its_section(section, models):
    keys = {field.alias or name for model in models for name, field in model.model_fields.items()}
    assert {key for key in keys if f"`{key}`" not in text_of(section)} == set()


@pytest.mark.parametrize(
    ("section", "models"),
    [
        ("## Top level", [Header, Setup]),
        ("## `path`", [PathSetup]),
        ("**`loss`**", [Loss]),
        ("## `flows`", [FlowGroup]),
    ],
)
def test_every_table_has_all_keys_with_their_defaults(section, models):
    table = rows(text_of(section))
    fields = {field.alias or name: field for model in models for name, field in model.model_fields.items()}
    assert set(table) == set(fields) | ({"vary", "except", "quick", "full"} if Header in models else set())
    for key, field in fields.items():
        if field.is_required():
            assert table[key] == "required", key
        elif field.default is not None and field.default is not PydanticUndefined and field.default != ():
            reader = TypeAdapter(Annotated[field.annotation, field])
            assert reader.validate_python(table[key]) == field.default, key


def text_of(section):
    """What stands under a heading, up to the next of its kind."""
    after = PAGE.split(f"\n{section}", 1)[1]
    return after.split("\n## " if section.startswith("##") else "\n**", 1)[0].split("\n## ", 1)[0]


def rows(text):
    """Key → default, of the first table."""
    lines = itertools.takewhile(
        lambda line: line.startswith("|"), text[text.index("|---") :].splitlines()[1:]
    )
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {key: default for keys, *_, default in cells for key in re.findall(r"`(\w+)`", keys)}


def test_every_congestion_control_and_slice_is_named():
    named = re.search(r"Congestion controls: `([^`]*)`", PAGE)
    assert set(named[1].split()) == set(CCAS)
    assert {name for name in bundled.names("slices") if f"| `{name}` |" not in PAGE} == set()
