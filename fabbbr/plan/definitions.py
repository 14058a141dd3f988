"""Slice definitions: Python files with a function of their own name that returns a Topology.

The function's keyword parameters are typed; what the experiment file says for them is validated against the
types, so ``slice: {name: dumbbell, hosts: five}`` is refused with the parameter's name.
"""

from __future__ import annotations

import importlib.util
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ConfigDict, ValidationError, create_model

from fabbbr import bundled
from fabbbr.errors import FabbbrError, SpecError, UsageError
from fabbbr.spec.experiment import SliceChoice
from fabbbr.spec.explain import unknown_key
from fabbbr.topology import Topology


def load(choice: SliceChoice, *, beside: Path | None = None) -> Topology:
    """Build the topology that ``choice`` names; ``beside`` is the folder of the experiment file.

    Runs the definition, which is the user's own Python. Raises SpecError when there is no such file,
    when it does not return a sound Topology or a parameter does not fit.
    """
    try:
        path = bundled.find("slices", choice.name, beside=beside)
    except UsageError as error:
        message = f"slice: {error}"
        raise SpecError(message) from None
    function = _function(path)
    parameters = _parameters(function, choice, path)
    try:
        topology = function(**parameters)
    except FabbbrError as error:
        message = f"{path}: {error}"
        raise SpecError(message) from error
    except Exception as error:  # the code is the user's: it may raise anything
        raise SpecError(_own_words(path, error)) from error
    if not isinstance(topology, Topology):
        message = (
            f"{path}: {path.stem}() returned {type(topology).__name__}; return a fabbbr.topology.Topology"
        )
        raise SpecError(message)
    return topology


def _function(path: Path) -> Callable[..., Any]:
    function = getattr(_module(path), path.stem, None)
    if not callable(function):
        message = f"{path}: no function {path.stem}; a slice file defines one of its own name"
        raise SpecError(message)
    return function  # type: ignore[no-any-return]


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fabbbr_slice_{path.stem}", path)
    if spec is None or spec.loader is None:
        message = f"{path}: not a Python file; a slice definition ends in .py"
        raise SpecError(message)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        message = f"{path}:{error.lineno}: not Python: {error.msg}"
        raise SpecError(message) from error
    except Exception as error:  # the code is the user's: it may raise anything
        raise SpecError(_own_words(path, error)) from error
    return module


def _own_words(path: Path, error: Exception) -> str:
    """The error of a user's definition, at the last line of that file that was running."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    place = f"{path}:{lines[-1]}" if lines else str(path)
    return f"{place}: the slice definition failed: {type(error).__name__}: {error}; correct it"


def _parameters(function: Callable[..., Any], choice: SliceChoice, path: Path) -> dict[str, Any]:
    """What the experiment says for the parameters, as the types that the function declares."""
    try:
        declared = inspect.signature(function, eval_str=True).parameters.values()
        fields: dict[str, Any] = {
            one.name: (
                Any if one.annotation is one.empty else one.annotation,
                ... if one.default is one.empty else one.default,
            )
            for one in declared
        }
        model = create_model("Parameters", __config__=ConfigDict(extra="forbid"), **fields)
    except Exception as error:  # annotations are the user's code too
        raise SpecError(_own_words(path, error)) from error
    try:
        return dict(model.model_validate(choice.parameters))
    except ValidationError as error:
        raise SpecError(_parameter_message(error, path, tuple(fields))) from None


def _parameter_message(error: ValidationError, path: Path, known: tuple[str, ...]) -> str:
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"slice {path.stem}: {name}: {unknown_key(name, known, what='parameter')}"
    return f"slice {path.stem}: {name} = {first['input']!r}: {first['msg'][:1].lower()}{first['msg'][1:]}"
