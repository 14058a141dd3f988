"""The JSON schema of experiment files, for editors that complete and check YAML while it is typed.

The schema knows keys, kinds and ranges; what keys mean together is checked by :mod:`fabbbr.spec.read` alone.
"""

from __future__ import annotations

from typing import Any

from fabbbr.spec.experiment import Header, Setup

Schema = dict[str, Any]

_REFERENCE = {"type": "string", "pattern": r"^\$[a-z][a-z0-9_]*$"}
_VALUE = {"type": ["string", "number", "boolean"]}
_AXIS = {"type": "array", "items": _VALUE, "minItems": 1}
_FACTORS = {
    "type": "object",
    "properties": {"zip": {"type": "object", "additionalProperties": _AXIS}},
    "additionalProperties": _AXIS,
}
_BY_HAND = {
    "vary": {"anyOf": [_FACTORS, {"type": "array", "items": _FACTORS}]},
    "except": {"type": "array", "items": {"type": "object", "additionalProperties": _VALUE}},
    "quick": {"type": "object"},
    "full": {"type": "object"},
}


def json_schema() -> Schema:
    """JSON Schema (2020-12) of an experiment file."""
    header = Header.model_json_schema(by_alias=True)
    setup = Setup.model_json_schema(by_alias=True)
    parts = {name: _variable(part) for name, part in setup["$defs"].items()}
    parts["SliceChoice"] = {"anyOf": [_VALUE, {"type": "object", "required": ["name"]}]}
    for alone in ("Loss", "AckAggregation"):
        parts[alone] = {"anyOf": [_VALUE, parts[alone]]}
    keys = {name: _variable(part) for name, part in setup["properties"].items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "fabbbr experiment",
        "type": "object",
        "additionalProperties": False,
        "required": [*header["required"], *setup["required"]],
        "properties": {**_without_null(header["properties"]), **keys, **_BY_HAND},
        "$defs": parts,
    }


def _variable(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Let ``$name`` stand wherever a scalar may, and refuse null, which no key takes."""
    schema = _without_null(schema)
    if not isinstance(schema, dict):
        return schema
    for key in schema.keys() & {"properties", "patternProperties"}:
        schema[key] = {name: _variable(part) for name, part in schema[key].items()}
    for key in schema.keys() & {"items", "additionalProperties"}:
        schema[key] = _variable(schema[key])
    for key in schema.keys() & {"anyOf", "oneOf"}:
        schema[key] = [_variable(part) for part in schema[key]]
    if schema.get("type") in ("string", "integer", "number", "boolean"):
        return {"anyOf": [schema, _REFERENCE, *([{"type": "number"}] if _takes_numbers(schema) else [])]}
    return schema


def _takes_numbers(schema: Schema) -> bool:
    """Whether a quantity may do without a unit, so that YAML reads it as a number: a ratio."""
    return str(schema.get("pattern", "")).endswith("?$")


def _without_null(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Drop null branches, and defaults that are records and not JSON."""
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: [part for part in value if part != {"type": "null"}] if key == "anyOf" else _without_null(value)
        for key, value in schema.items()
        if not (key == "default" and (value is None or isinstance(value, dict)))
    }
    only = kept.get("anyOf", ())
    if len(only) == 1:
        return {**{key: value for key, value in kept.items() if key != "anyOf"}, **only[0]}
    return kept
