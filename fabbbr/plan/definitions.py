"""Slice definitions: Python files with a function of their own name that returns a Topology.

The function's keyword parameters are typed; what the experiment file says for them is validated against the
types, so ``slice: {name: dumbbell, hosts: five}`` is refused with the parameter's name.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from pydantic import ConfigDict, ValidationError, create_model

from fabbbr import bundled, files, limits
from fabbbr.errors import FabbbrError, SpecError, UsageError
from fabbbr.foreign import shown
from fabbbr.spec.document import Mistake
from fabbbr.spec.experiment import SliceChoice
from fabbbr.spec.explain import unknown_key
from fabbbr.topology import Topology
from fabbbr.trust import Trust


class ParametersError(SpecError):
    """Parameters that do not fit the definition; ``found`` has each with its key and what to do about it."""

    def __init__(self, message: str, found: Sequence[Mistake] = ()) -> None:
        super().__init__(message)
        self.found = tuple(found)


_SITE = "_site"
"""Parameters that end so are the places of a definition: each is the site of some of its nodes."""


def places(choice: SliceChoice, *, beside: Path | None = None, trust: Trust | None = None) -> tuple[str, ...]:
    """The parameters of the definition that are sites, in the order that it declares them.

    Raises as :func:`load`.
    """
    _, function = _definition(choice, beside, trust)
    return tuple(name for name in inspect.signature(function).parameters if name.endswith(_SITE))


def load(choice: SliceChoice, *, beside: Path | None = None, trust: Trust | None = None) -> Topology:
    """Build the topology that ``choice`` names; ``beside`` is the folder of the experiment file.

    Runs the definition: where it is not a bundled one, ``trust`` is asked first (default: what was agreed
    before may run). Raises UntrustedError when it may not run, SpecError when there is no such file, when it
    does not return a sound Topology or a parameter does not fit.
    """
    path, function = _definition(choice, beside, trust)
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


def _definition(
    choice: SliceChoice, beside: Path | None, trust: Trust | None
) -> tuple[Path, Callable[..., Any]]:
    try:
        path = bundled.find("slices", choice.name, beside=beside)
    except UsageError as error:
        message = f"slice: {error}"
        raise SpecError(message) from None
    return path, _function(path, _code(path, (trust or Trust()) if bundled.is_path(choice.name) else None))


def _code(path: Path, trust: Trust | None) -> CodeType:
    """What the file says now, read once: what is asked about and what runs are the same bytes.

    So nothing is taken from ``__pycache__``, which may say something else than the file does.
    """
    if path.suffix != ".py":
        message = f"{path}: not a Python file; a slice definition ends in .py"
        raise SpecError(message)
    content = files.read_named(path, most=limits.FILE_BYTES, said="the most of a slice definition")
    if trust is not None:
        trust.require(path, content)
    try:
        # What a definition asserts of its parameters holds in an optimizing interpreter too.
        return compile(content, str(path), "exec", dont_inherit=True, optimize=0)
    except SyntaxError as error:
        message = f"{path}:{error.lineno}: not Python: {error.msg}"
        raise SpecError(message) from error
    except Exception as error:  # a null byte, brackets nested too deep
        message = f"{path}: not Python: {error or type(error).__name__}"
        raise SpecError(message) from error


def _function(path: Path, code: CodeType) -> Callable[..., Any]:
    function = getattr(_module(path, code), path.stem, None)
    if not callable(function):
        message = f"{path}: no function {path.stem}; a slice file defines one of its own name"
        raise SpecError(message)
    return function  # type: ignore[no-any-return]


def _module(path: Path, code: CodeType) -> ModuleType:
    module = ModuleType(f"fabbbr_slice_{path.stem}")
    module.__file__ = str(path)
    try:
        exec(code, module.__dict__)  # noqa: S102 - a slice definition is Python, and was agreed to
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
        found = list(_wrong_parameters(error, tuple(fields)))
        lines = (f"slice {path.stem}: {loc[-1]}: {message}" for loc, message in found)
        raise ParametersError("\n".join(lines), found) from None


def _wrong_parameters(error: ValidationError, known: tuple[str, ...]) -> Iterator[Mistake]:
    for detail in error.errors(include_url=False):
        loc = ("slice", *detail["loc"][:1])
        if detail["type"] == "extra_forbidden":
            yield loc, unknown_key(str(loc[-1]), known, what="parameter")
        elif detail["type"] == "missing":
            yield loc, "is missing; give it a value"
        else:
            yield loc, f"{shown(detail['input'])}: {detail['msg'][:1].lower()}{detail['msg'][1:]}"
