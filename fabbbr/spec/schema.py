"""The JSON schema of experiment files, for editors that complete, explain and check YAML while it is typed.

The schema knows keys, kinds, ranges and defaults; what keys mean together is checked by
:mod:`fabbbr.spec.read` alone. Descriptions are the docstrings of the records' fields.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import is_dataclass
from typing import Any, cast

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import ModelSchema

from fabbbr.spec.experiment import Header, Setup

Schema = dict[str, Any]

_REFERENCE = {"type": "string", "pattern": r"^\$[a-z][a-z0-9_]*$"}
_VALUE = {"type": ["string", "number", "boolean"]}
_AXIS = {"type": "array", "items": _VALUE, "minItems": 1}
_FACTORS = {
    "type": "object",
    "properties": {
        "zip": {
            "description": "Axes that advance together. Default: every combination of all axes.",
            "type": "object",
            "additionalProperties": _AXIS,
        }
    },
    "additionalProperties": _AXIS,
}
_DIFFERS = "does differently: keys of this file, and axes with other values. Default: nothing."
_BY_HAND = {
    "vary": {
        "description": "Axis → its values; ``$axis`` stands for them elsewhere. Default: one condition.",
        "anyOf": [_FACTORS, {"type": "array", "items": _FACTORS}],
    },
    "except": {
        "description": "Combinations of values that are left out. Default: none.",
        "type": "array",
        "items": {"type": "object", "additionalProperties": _VALUE},
    },
    "quick": {"description": f"What ``--quick`` {_DIFFERS}", "type": "object"},
    "full": {"description": f"What ``--full`` {_DIFFERS}", "type": "object"},
}
_ANNOTATIONS = ("title", "description", "default", "examples")
"""What is said of a key, whichever form its value has."""


class _Generator(GenerateJsonSchema):
    """Writes the default of a quantity as an experiment file would; no interpreter drops a description."""

    def model_schema(self, schema: ModelSchema) -> Schema:
        return {"description": _docstring(schema["cls"]), **super().model_schema(schema)}

    def encode_default(self, dft: Any) -> Any:  # noqa: ANN401 - whatever a field has
        return super().encode_default(str(dft) if is_dataclass(dft) else dft)


def _docstring(record: type) -> str:
    """From the source, as pydantic takes those of fields: an interpreter that optimizes drops them."""
    (definition,) = ast.parse(inspect.getsource(record)).body
    return ast.get_docstring(cast("ast.ClassDef", definition)) or ""


def json_schema() -> Schema:
    """JSON Schema (2020-12) of an experiment file."""
    header = Header.model_json_schema(schema_generator=_Generator)
    setup = Setup.model_json_schema(schema_generator=_Generator)
    parts = {name: _variable(part) for name, part in setup["$defs"].items()}
    parts["SliceChoice"] = _with_parameters(parts["SliceChoice"])
    for alone in ("Loss", "AckAggregation", "LinkCapture", "SizeDistribution"):
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


def _with_parameters(choice: Schema) -> Schema:
    """A slice's name alone, or a mapping in which its parameters stand beside the name."""
    properties = {"name": choice["properties"]["name"]}
    return {"anyOf": [_VALUE, {**choice, "properties": properties, "additionalProperties": _VALUE}]}


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
        said = {key: schema.pop(key) for key in _ANNOTATIONS if key in schema}
        numbers = [{"type": "number"}] if _takes_numbers(schema) else []
        return {**said, "anyOf": [schema, _REFERENCE, *numbers]}
    return schema


def _takes_numbers(schema: Schema) -> bool:
    """Whether a quantity may do without a unit, so that YAML reads it as a number: a ratio."""
    return str(schema.get("pattern", "")).endswith("?$")


def _without_null(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Drop null branches and defaults."""
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: [part for part in value if part != {"type": "null"}] if key == "anyOf" else _without_null(value)
        for key, value in schema.items()
        if not (key == "default" and value is None)
    }
    only = kept.get("anyOf", ())
    if len(only) == 1:
        return {**{key: value for key, value in kept.items() if key != "anyOf"}, **only[0]}
    return kept
