"""The JSON schema: it takes what the reader takes, as an editor's YAML parser would hand it over."""

import copy

import pytest
import yaml

jsonschema = pytest.importorskip("jsonschema")

from fabbbr import bundled
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
        (("path", "aqm"), "codle"),
        (("path", "mtu"), 100),
        (("flows", 0, "count"), 0),
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
