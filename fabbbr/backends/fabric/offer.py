"""FABRIC's summary of its resources, and what it says of a token: the offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fabbbr.reserve.records import Key, NicKind, Offer, Project, Room, Site

_NICS: dict[str, NicKind] = {
    "SharedNIC-ConnectX-6": "NIC_Basic",
    "SmartNIC-ConnectX-5": "NIC_ConnectX_5",
    "SmartNIC-ConnectX-6": "NIC_ConnectX_6",
    "SmartNIC-ConnectX-7-100": "NIC_ConnectX_7_100",
    "SmartNIC-ConnectX-7-400": "NIC_ConnectX_7_400",
}
_IN_SERVICE = ("Active", "PreMaint")

_Answer = Mapping[str, Any]
_State = Literal["active", "partly in maintenance", "in maintenance"]


def offer(summary: _Answer, token: _Answer, project_id: str, keys: tuple[Key, ...] = ()) -> Offer:
    """From the orchestrator's resource summary and what the credential manager says of the user's token."""
    hosts: dict[str, list[_Answer]] = {}
    for host in summary.get("hosts") or ():
        hosts.setdefault(str(host.get("site")), []).append(host)
    sites = (_site(answer, hosts.get(str(answer["name"]), ())) for answer in summary.get("sites") or ())
    return Offer(sites={site.name: site for site in sites}, project=project(token, project_id), keys=keys)


def project(token: _Answer, project_id: str) -> Project:
    """The user's project in the credential manager's answer; without tags when the token is not for it."""
    held = token.get("token", token).get("projects") or ()
    found: _Answer = next((each for each in held if each.get("uuid") == project_id), {})
    return Project(
        id=project_id,
        name=str(found.get("name") or project_id),
        tags=tuple(sorted(str(tag) for tag in found.get("tags") or ())),
    )


def _site(answer: _Answer, hosts: Sequence[_Answer]) -> Site:
    serving = [host for host in hosts if host.get("state", "Active") in _IN_SERVICE]
    parts = serving if hosts else [answer]
    location = answer.get("location")
    return Site(
        name=str(answer["name"]),
        state=_state(str(answer.get("state"))),
        workers=tuple(str(host["name"]) for host in serving),
        location=(float(location[0]), float(location[1])) if location else None,
        cores=_room(parts, "cores"),
        ram_gb=_room(parts, "ram"),
        disk_gb=_room(parts, "disk"),
        nics=_nics(parts),
    )


def _state(said: str) -> _State:
    if said in _IN_SERVICE:
        return "active"
    return "partly in maintenance" if said == "PartMaint" else "in maintenance"


def _room(parts: Sequence[_Answer], what: str) -> Room:
    return Room(
        capacity=sum(int(part.get(f"{what}_capacity") or 0) for part in parts),
        available=sum(int(part.get(f"{what}_available") or 0) for part in parts),
    )


def _nics(parts: Sequence[_Answer]) -> dict[NicKind, Room]:
    rooms: dict[NicKind, Room] = {}
    for part in parts:
        for model, count in (part.get("components") or {}).items():
            kind = _NICS.get(model)
            if kind is None:
                continue
            before = rooms.get(kind, Room(capacity=0, available=0))
            rooms[kind] = Room(
                capacity=before.capacity + int(count.get("capacity") or 0),
                available=before.available + int(count.get("available") or 0),
            )
    return rooms
