"""What pydantic found, in the words of the person who wrote the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from fabbbr.foreign import listed, shown
from fabbbr.record import Record
from fabbbr.spec.document import Loc
from fabbbr.suggest import did_you_mean


def unknown_key(key: str, known: Sequence[str], *, what: str = "key", hint: str = "") -> str:
    """``unknown key; did you mean 'rate'? (known: …)``; with a ``hint`` that, and no guess."""
    return f"unknown {what}{hint or did_you_mean(key, known)} (known: {listed(known) or 'none'})"


def stray_key(key: str, known: Sequence[str], root: type[Record]) -> str:
    """As :func:`unknown_key`, and where in a file of ``root`` the key does stand.

    Keys of tc, iperf3 and ss are known by the names that they have here.
    """
    key = key.removeprefix("net.ipv4.")
    name, hint = _NAMES_HERE.get(key, key), _INSTEAD.get(key, "")
    under = " or ".join(_places(root).get(name, ()))
    if name in known:
        hint = f"; did you mean {name!r}?"
    elif under and name == key:
        hint = f"; it stands under {under}"
    elif under:
        hint = f"; did you mean {name!r} under {under}?"
    return unknown_key(key, known, hint=hint)


_NAMES_HERE = {
    "bandwidth": "rate",
    "bitrate": "rate",
    "bw": "rate",
    "capacity": "rate",
    "delay": "rtt",
    "latency": "rtt",
    "reorder": "reordering",
    "queue": "buffer",
    "limit": "buffer",
    "bucket": "burst",
    "token_bucket": "burst",
    "cbs": "burst",
    "qdisc": "aqm",
    "algorithm": "cca",
    "cc": "cca",
    "congestion": "cca",
    "congestion_control": "cca",
    "time": "duration",
    "bytes": "size",
    "parallel": "streams",
    "group": "label",
    "name": "label",
    "pacing_rate": "pacing",
    "interval": "sample_period",
    "omit": "warm_up",
    "runs": "repeat",
    "repetitions": "repeat",
    "initcwnd": "initial_window",
    "init_cwnd": "initial_window",
    "iw": "initial_window",
    "window": "tcp_rmem",
    "rmem": "tcp_rmem",
    "wmem": "tcp_wmem",
}
"""What others call it → what it is called here."""
_INSTEAD = {
    "jitter": "; delays that vary in order are ack_aggregation, those that do not keep it reordering",
    "policer": "; a policer is a burst and a buffer of 2 packets, under path",
    "police": "; a policer is a burst and a buffer of 2 packets, under path",
    "every": "; the flows of a group follow one another by stagger, or at random by arrivals",
    "tcp_congestion_control": "; the congestion control is cca, of each group of flows",
    "tcp_ecn": "; write ecn: true under path",
    "tcp_mem": "; it is of the whole machine, not of one host",
    "tcp_timestamps": "; they stay on, for what a segment carries is part of every ceiling here",
    "tcp_base_mss": "; the size of packets is mtu, under path",
    "tcp_mtu_probing": "; the size of packets is mtu, under path",
    "tcp_no_metrics_save": "; no flow remembers another here",
}
"""What is not here under any name → what there is instead."""
_MEANT = {
    "module": "; parameters of one that there is are set on a copy: 'fabbbr cca copy cubic --to tcp_mine'"
}
"""A key that is missing → what whoever left it out may have meant."""


def _places(root: type[Record]) -> dict[str, list[str]]:
    """Key → where in a file of ``root`` it stands, as ``path`` and ``links.NAME``."""
    found: dict[str, list[str]] = {}
    for name, field in root.model_fields.items():
        record = _record_in(field.annotation)
        if record is not None:
            named = f"{name}.NAME" if get_origin(field.annotation) is dict else name
            for key in _keys_of(record):
                found.setdefault(key, []).append(named)
    return found


def messages(error: ValidationError, kind: type[Record]) -> Iterator[tuple[Loc, str]]:
    """Each mistake as its location in the file and a sentence with the remedy."""
    for detail in error.errors(include_url=False):
        yield detail["loc"], _message(detail, kind)


_MAPPINGS = ("model_type", "dict_type")
_EXPECTED = {
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    **dict.fromkeys(_MAPPINGS, "expected keys with values, one a line or in braces"),
    "tuple_type": "expected a list; write it in brackets or with dashes",
    "string_type": "expected a single word or quantity",
}


def _message(detail: ErrorDetails, kind: type[Record]) -> str:
    *parents, last = detail["loc"]
    given = detail["input"]
    match detail["type"]:
        case "extra_forbidden":
            return stray_key(str(last), _keys_of(_model_at(kind, parents)), kind)
        case "missing":
            example = _example(_field(_model_at(kind, parents), last), str(last))
            return f"is missing{example}{_MEANT.get(str(last), '')}"
        case "literal_error":
            known = re.findall(r"'([^']+)'", detail["ctx"]["expected"])
            return f"{shown(given)} is not known{did_you_mean(str(given), known)} (known: {listed(known)})"
        case "string_pattern_mismatch":
            return f"{shown(given)} does not fit the pattern {detail['ctx']['pattern']}"
        case "plain_words":
            return detail["msg"]
        case other:
            words = detail["msg"]
            example = _in_braces(_field(_model_at(kind, parents), last)) if other in _MAPPINGS else ""
            return f"{shown(given)}: {_EXPECTED.get(other) or words[:1].lower() + words[1:]}{example}"


def _example(field: FieldInfo | None, key: str) -> str:
    examples = field.examples if field is not None else None
    return f"; add e.g. {key}: {examples[0]}" if examples else ""


def _in_braces(field: FieldInfo | None) -> str:
    examples = field.examples if field is not None else None
    return f", e.g. {examples[0]}" if examples and str(examples[0]).startswith("{") else ""


def _keys_of(model: type[Record]) -> tuple[str, ...]:
    """The keys that a file may give for ``model``."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def field_at(kind: type[Record], loc: Loc) -> FieldInfo | None:
    """The field that validates what stands at ``loc``; None for an item of a list and a name in a mapping."""
    return _field(_model_at(kind, loc[:-1]), loc[-1]) if loc else None


def _field(model: type[Record], key: str | int) -> FieldInfo | None:
    named = (field for name, field in model.model_fields.items() if key in (name, field.alias))
    return next(named, None)


def _model_at(kind: type[Record], loc: Sequence[str | int]) -> type[Record]:
    """The record that validates what stands at ``loc``; names of links and positions lead no deeper."""
    model = kind
    for part in loc:
        field = _field(model, part)
        model = (_record_in(field.annotation) if field is not None else None) or model
    return model


def _record_in(annotation: object) -> type[Record] | None:
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return annotation
    found = (_record_in(argument) for argument in get_args(annotation))
    return next((record for record in found if record is not None), None)
