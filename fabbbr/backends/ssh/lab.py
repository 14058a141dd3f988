"""The file that says which hosts there are, how they are reached and what they carry.

.. code-block:: yaml

    jumps:                       # machines on the way, if any
      gate: {address: gate.example.org, user: me, key: ~/.ssh/id_ecdsa}
    machines:
      left:
        address: 192.0.2.1
        user: root               # anybody else needs sudo without a password
        port: 22
        key: ~/.ssh/id_ecdsa
        jump: gate
        nodes: [h1]              # hosts and switches of the slice definition; default: its own name
        links: {access: eth1}    # link of the definition: the interface that carries it, or its MAC address
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, ValidationError

from fabbbr import files, limits
from fabbbr.backends.ssh.config import Way
from fabbbr.errors import SpecError
from fabbbr.record import Record

_NAME = r"^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$"
_WORD = r"^[^\s\x00-\x1f\"%#-][^\s\x00-\x1f\"%]*$"
"""What may stand in a line of ssh's configuration."""
_PATH = r"^[^\x00-\x1f\"]+$"
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")

Name = Annotated[str, Field(pattern=_NAME)]
Word = Annotated[str, Field(pattern=_WORD)]


class Jump(Record):
    """A machine on the way to others."""

    address: Word
    user: Word = "root"
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    key: Annotated[str, Field(pattern=_PATH)] | None = None
    jump: Name | None = None


class LabMachine(Jump):
    """A machine that carries a part of the slice."""

    site: str = "lab"
    nodes: tuple[str, ...] = ()
    links: dict[str, str] = Field(default_factory=dict)


class Lab(Record):
    """The whole file."""

    jumps: dict[Name, Jump] = Field(default_factory=dict)
    machines: Annotated[dict[Name, LabMachine], Field(min_length=1)]

    @property
    def placement(self) -> dict[str, str]:
        """Node of the slice definition → machine."""
        return {node: name for name, machine in self.machines.items() for node in machine.nodes or (name,)}

    def ways(self) -> list[Way]:
        """How ssh finds all of them."""
        return [
            Way(
                name=name,
                address=one.address,
                user=one.user,
                port=one.port,
                key=None if one.key is None else str(Path(one.key).expanduser()),
                jump=one.jump,
            )
            for name, one in {**self.jumps, **self.machines}.items()
        ]


def read(path: Path) -> Lab:
    """The file at ``path``; raise SpecError, which names it, when it cannot be read or understood."""
    content = files.read_named(path, most=limits.FILE_BYTES, said="the most of an inventory")
    try:
        lab = Lab.model_validate(yaml.safe_load(content))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        message = f"{path}: not YAML: {' '.join(str(error).split())}"
        raise SpecError(message) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        message = f"{path}: {'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"
        raise SpecError(message) from None
    _check(lab, path)
    return lab


def is_mac(text: str) -> bool:
    """Whether an interface is named by its address.

    >>> is_mac("02:00:00:00:00:0A"), is_mac("eth0")
    (True, False)
    """
    return _MAC.fullmatch(text.lower()) is not None


def _check(lab: Lab, path: Path) -> None:
    known = {**lab.jumps, **lab.machines}
    placed: dict[str, Any] = {}
    for name, machine in lab.machines.items():
        for node in machine.nodes or (name,):
            if node in placed:
                message = f"{path}: {node} stands on {placed[node]} and on {name}; a node has one machine"
                raise SpecError(message)
            placed[node] = name
    for name, one in known.items():
        if one.jump is not None and (one.jump not in known or one.jump == name):
            message = f"{path}: {name} is reached by {one.jump}, which is no other machine; add it to jumps"
            raise SpecError(message)
    both = sorted(set(lab.jumps) & set(lab.machines))
    if both:
        message = f"{path}: {', '.join(both)} is a jump and a machine; say it under machines alone"
        raise SpecError(message)
