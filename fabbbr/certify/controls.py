"""Which congestion controls ran: what the kernels of the senders said, against what was asked. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ValidationError

from fabbbr.certify.evidence import Answer, answer_to
from fabbbr.job.expected import Control, Prepared
from fabbbr.job.records import Capture
from fabbbr.manifest import Check, CongestionControl
from fabbbr.model import Module

_SOURCE = re.compile(r"[0-9a-f]{16}")
_BPF_STATUS = re.compile(
    r"registered: fab_bbr2 \(profile (?P<profile>\w+)\), fab_bbr3; source (?P<source>\w+)"
)

_NEEDS_A_MODE = "a parameter that cannot be read back needs a mode, as in module_param(beta, int, 0444)"

Readback = Mapping[str, Answer]


class _Told(NamedTuple):
    """What stands behind our names on one sender, as its kernel says."""

    form: Literal["module", "bpf"] | None = None
    profile: str | None = None
    source: str | None = None


def _told(readback: Readback, control: Control, asked: Capture) -> _Told:
    """Only bbr2 can be set to a profile: the others are of the profile that they were asked for."""
    answer = answer_to(asked, readback, "readback.json").stdout
    told = _told_by_bpf(answer) or _told_by_module(answer)
    return told if control.cca == "bbr2" else told._replace(profile=control.profile)


def _told_by_bpf(answer: str) -> _Told | None:
    status = _BPF_STATUS.match(answer)
    return None if status is None else _Told("bpf", status["profile"], status["source"])


def _told_by_module(answer: str) -> _Told:
    """Lines of ``grep`` over the files of its parameters: ``/sys/…/profile:v2alpha``."""
    pairs = (line.rpartition("/")[2].partition(":") for line in answer.splitlines())
    told = {name: value for name, _, value in pairs}
    return _Told("module", told.get("profile"), told["source"]) if "source" in told else _Told()


def checks(expected: Sequence[Control], readback: Readback) -> Iterator[Check]:
    """Whether each sender's kernel runs the BBR that was asked for."""
    for control in {(one.sender, one.kernel_name): one for one in expected}.values():
        if control.asked_of_ours is not None:
            yield _is_ours(control, _told(readback, control, control.asked_of_ours))
        if control.module is not None and control.asked_of_module is not None:
            yield _is_own(control, control.module, _told_of_module(readback, control.asked_of_module))
    for control in {one.sender: one for one in expected if one.asked_of_bbr is not None}.values():
        assert control.asked_of_bbr is not None
        version = _told_version(readback, control.asked_of_bbr)
        yield Check(
            name=f"{control.kernel_name} of {control.sender}",
            passed=version == control.version,
            asked="bbr of version 3" if control.version else "mainline's bbr, which has no version",
            measured=f"version {version}" if version else "no version",
        )


def _is_ours(control: Control, told: _Told) -> Check:
    known = told.source is not None and _SOURCE.fullmatch(told.source) is not None
    return Check(
        name=f"{control.kernel_name} of {control.sender}",
        passed=told.profile == control.profile and known,
        asked=f"profile {control.profile}, of known source",
        measured=f"profile {told.profile}, source {told.source}",
    )


class _ToldOfModule(BaseModel):
    """What the agent says of a module of the user's own, see :mod:`fabbbr.agent.loading`."""

    module: str
    source_sha256: str
    parameters: dict[str, str]
    form: Literal["bpf"] | None = None
    """None for what was loaded as a module."""


def _told_of_module(readback: Readback, asked: Capture) -> _ToldOfModule | None:
    answer = answer_to(asked, readback, "readback.json", exits=(0, 1))
    try:
        return _ToldOfModule.model_validate_json(answer.stdout)
    except ValidationError:
        return None


def _is_own(control: Control, module: Module, told: _ToldOfModule | None) -> Check:
    """Whether the module of these sources is loaded, with these parameters."""
    has = told.parameters if told is not None else {}
    ran = {"module": "", "native": ", compiled natively", "bpf": ", as BPF"}[_form(module, told)]
    same = all(name in has and _meant(has[name]) == _meant(value) for name, value in module.params.items())
    return Check(
        name=f"{control.kernel_name} of {control.sender}",
        passed=told is not None and told.source_sha256 == module.sha256 and same,
        asked=f"source {module.sha256[:16]}{_spelt(module.params)}",
        measured="not loaded" if told is None else f"source {told.source_sha256[:16]}{_spelt(has)}{ran}",
        detail="" if module.params.keys() <= has.keys() else _NEEDS_A_MODE,
    )


def _spelt(params: Mapping[str, str]) -> str:
    return "".join(f", {name}={value}" for name, value in params.items())


def _meant(value: str) -> object:
    """What two spellings of a parameter have in common: the kernel prints Y for 1 and 16 for 0x10."""
    try:
        return int(value, 0)
    except ValueError:
        return {"y": 1, "on": 1, "yes": 1, "n": 0, "off": 0, "no": 0}.get(value.lower(), value)


def _told_version(readback: Readback, asked: Capture) -> str:
    """Empty for a module without one: then cat must say that there is no such file, and not just nothing."""
    answer = answer_to(asked, readback, "readback.json", exits=(0, 1))
    if answer.exit == 1 and answer.stdout == "" and asked.command.argv[-1] in answer.stderr:
        return ""
    return answer.stdout.strip() or "(not told)"


def identified(prepared: Prepared, readback: Readback) -> tuple[CongestionControl, ...]:
    """What stood behind each name, for the provenance of the cell; in the order of the flows."""
    told = (
        _identified(one, readback, prepared.testbed.kernel_of(one.sender).release)
        for one in prepared.expected.controls
    )
    return tuple(dict.fromkeys(told))


def _identified(control: Control, readback: Readback, kernel_release: str) -> CongestionControl:
    if control.module is not None and control.asked_of_module is not None:
        return _identified_own(control, readback, control.asked_of_module)
    asked = control.asked_of_ours
    told = _told(readback, control, asked) if asked is not None else _Told()
    return CongestionControl(
        cca=control.cca,
        kernel_name=control.kernel_name,
        implementation=control.implementation or f"mainline {kernel_release}",
        profile=told.profile,
        source=told.source,
        form=told.form,
    )


def _identified_own(control: Control, readback: Readback, asked: Capture) -> CongestionControl:
    told = _told_of_module(readback, asked)
    kind = "BPF program" if control.module is not None and control.module.form == "bpf" else "module"
    return CongestionControl(
        cca=control.cca,
        kernel_name=control.kernel_name,
        implementation=f"{kind} {told.module}" if told is not None else kind,
        profile=" ".join(f"{name}={value}" for name, value in told.parameters.items()) or None
        if told is not None
        else None,
        source=told.source_sha256[:16] if told is not None else None,
        form=_form(control.module, told),
    )


def _form(module: Module | None, told: _ToldOfModule | None) -> Literal["module", "bpf", "native"]:
    """In which it ran: a BPF program that was loaded as a module was compiled natively."""
    if told is not None and told.form is not None:
        return told.form
    return "native" if module is not None and module.form == "bpf" else "module"
