"""The JSON schema: it takes what the reader takes, as an editor's YAML parser would hand it over."""

import copy
from typing import Annotated

import pytest
import yaml
from pydantic import TypeAdapter
from pydantic_core import PydanticUndefined

jsonschema = pytest.importorskip("jsonschema")

from fabbbr import bundled, quantity
from fabbbr.model import Loss
from fabbbr.spec.experiment import FlowGroup, Header, PathSetup, Setup
from fabbbr.spec.schema import json_schema

VALIDATOR = jsonschema.Draft202012Validator(json_schema())
F10 = yaml.safe_load(bundled.find("experiments", "cardwell_f10").read_text())


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("name", bundled.names("experiments"))
def test_every_bundled_experiment_satisfies_the_schema(name):
    data = yaml.safe_load(bundled.find("experiments", name).read_text())
    assert [error.message for error in VALIDATOR.iter_errors(data)] == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("path", "rtt"), {"h1": "61 ms", "h2": "$far"}),
        (("path", "loss"), 0.001),
        (("path", "loss"), "$loss"),
        (("path", "ack_aggregation"), "5 ms"),
        (("path", "ack_aggregation"), {"least": "$least", "most": "5 ms"}),
        (("path", "reordering"), {"rate": "$share", "late": "5 ms"}),
        (("path", "burst"), "20 packets"),
        (("path", "burst"), "$depth"),
        (("links",), {"trunk": {"reordering": {"rate": 0.01, "late": "5 ms"}}}),
        (("path", "mtu"), "$mtu"),
        (("path", "ecn"), True),
        (("slice",), {"name": "dumbbell", "hosts": 5}),
        (("links",), {"trunk": {"aqm": "cake"}}),
        (("vary",), [{"zip": {"a": [1], "b": ["2 ms"]}}, {"c": ["x"]}]),
        (("flows", 0, "count"), "$n"),
        (("flows", 0, "from"), "h1"),
    ],
)
def test_what_the_documentation_allows_satisfies_the_schema(key, value):
    assert list(VALIDATOR.iter_errors(changed(key, value))) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("pat",), {}),
        (("path", "rtt"), "40"),
        (("path", "rate"), "100 Mbps"),
        (("path", "rate"), None),
        (("path", "ack_aggregation"), {"most": "5 ms"}),
        (("path", "reordering"), "1 %"),
        (("path", "burst"), "20 Mbit"),
        (("path", "reordering"), {"rate": "1 %"}),
        (("path", "aqm"), "codle"),
        (("path", "mtu"), 100),
        (("flows", 0, "count"), -1),
        (("flows", 0, "streams"), 0),
        (("flows", 0, "receiver"), "h1"),
        (("repeat",), 0),
        (("repeat",), "$n"),
    ],
)
def test_what_the_reader_refuses_the_schema_refuses(key, value):
    assert list(VALIDATOR.iter_errors(changed(key, value)))


def changed(key, value):
    data = copy.deepcopy(F10)
    inner = data
    for part in key[:-1]:
        inner = inner[part]
    inner[key[-1]] = value
    return data


def properties(schema, at=""):
    """Every key of the schema with what is said of it, and whether it is required."""
    if isinstance(schema, list):
        for place, part in enumerate(schema):
            yield from properties(part, f"{at}[{place}]")
    elif isinstance(schema, dict):
        for name, part in schema.get("properties", {}).items():
            yield f"{at}.{name}", part, name in schema.get("required", ())
        for name, part in schema.items():
            yield from properties(part, f"{at}/{name}")


def test_every_key_is_described_with_its_default():
    keys = list(properties(json_schema()))
    assert {at for at, part, _ in keys if not part.get("description")} == set()
    silent = {
        at
        for at, part, required in keys
        if not required and "default" not in part and "default: " not in part["description"].lower()
    }
    assert silent == set()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (quantity.BitRate, ("bit/s",)),
        (quantity.Span, (" s", " ms", " seconds")),
        (quantity.ByteSize, ("bytes", "Bytes")),
        (quantity.Buffer, ("bytes",)),
        (quantity.Share, ("robability",)),
    ],
)
def test_every_quantity_is_described_with_its_unit(kind, words):
    pattern = TypeAdapter(kind).json_schema()["pattern"]
    taking = {at: part for at, part, _ in properties(json_schema()) if pattern in patterns(part)}
    assert len(taking) > 0
    assert {
        at for at, part in taking.items() if not any(word in part["description"] for word in words)
    } == set()


def patterns(part):
    return {form.get("pattern") for form in part.get("anyOf", ())}


def test_two_keys_have_two_descriptions():
    said = {}
    for at, part, _ in properties(json_schema()):
        said.setdefault(part["description"], set()).add(at.rpartition(".")[2])
    assert {text: keys for text, keys in said.items() if len(keys) > 1} == {}


@pytest.mark.parametrize("record", [Header, Setup, PathSetup, FlowGroup, Loss])
def test_a_default_of_the_schema_is_what_the_reader_takes(record):
    place = "" if record in (Header, Setup) else f"/$defs/{record.__name__}"
    said = {
        at.rpartition(".")[2]: part["default"]
        for at, part, _ in properties(json_schema())
        if at.removesuffix(at[at.rindex(".") :]).removesuffix("/anyOf[1]") == place and "default" in part
    }
    taken = {
        field.alias or name: (field, field.default)
        for name, field in record.model_fields.items()
        if field.default is not None and field.default is not PydanticUndefined
    }
    assert len(taken) > 0
    for key, (field, default) in taken.items():
        reader = TypeAdapter(Annotated[field.annotation, field])
        assert reader.validate_python(said[key]) == default
