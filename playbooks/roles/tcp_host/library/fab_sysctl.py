#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause

DOCUMENTATION = """
---
module: fab_sysctl
short_description: Kernel settings in force now and at every boot, or as they were before
description:
  - Sets values of the running kernel, reads them back, and writes them to one file of its own.
  - Where one value is refused, all are as they were before.
  - Remembers what each was before it was first set, and gives that back.
options:
  settings:
    description: Names as C(sysctl) knows them, and values.
    type: dict
    default: {}
  state:
    description: C(absent) gives back what was there, and removes the file.
    type: str
    choices: [present, absent]
    default: present
  file:
    description:
      - The file for every boot, below C(/etc/sysctl.d). It holds these settings and nothing else. Without
        one, they hold until the next boot.
    type: path
  record:
    description: The file on the node in which it remembers.
    type: path
    required: true
  tolerate_missing:
    description:
      - Whether settings that this kernel does not have here, or that may not be written here, are only told.
        A network name space lacks some that belong to the whole machine. Otherwise they are refused by name.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Says what it would change.
  diff_mode:
    support: full
    description: Shows the values before and after.
author: The fabbbr authors
"""

EXAMPLES = """
- name: Let a sender have large windows
  fab_sysctl:
    settings:
      net.core.wmem_max: 536870912
      net.ipv4.tcp_wmem: 4096 16384 536870912
    file: /etc/sysctl.d/99-large_windows.conf
    record: /var/lib/large_windows.json
"""

RETURN = """
missing:
  description: Setting → why it cannot be set here.
  type: dict
  returned: success
  sample: {net.core.rmem_max: may not be written in this network name space}
settings:
  description: The settings in force that were asked for, in check mode those that would be.
  type: dict
  returned: success
  sample: {net.ipv4.tcp_no_metrics_save: "1"}
"""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fab_node import Node, Record, RefusedError, answer, write_whole

ARGUMENT_SPEC = {
    "settings": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "file": {"type": "path"},
    "record": {"type": "path", "required": True},
    "tolerate_missing": {"type": "bool", "default": False},
}

Settings = Dict[str, str]


class Plan(NamedTuple):
    """What is to be done; values are as the kernel shows them, with single spaces."""

    now: Settings
    to: Settings
    """What will be in force of the settings that change."""
    kept: Dict[str, Any]
    """What the record will hold: setting → what it was, and what we made it."""


def main() -> None:
    answer(AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True), ensure)


def ensure(node: Node, asked: Dict[str, Any], *, check_mode: bool) -> Dict[str, Any]:
    """Have the settings in force; the return values of this module."""
    wanted = {name: one_line(value) for name, value in asked["settings"].items()}
    if asked["state"] == "absent":
        wanted = {}
    missing = {name: why for name, why in ((name, why_missing(node, name)) for name in wanted) if why}
    if missing and not asked["tolerate_missing"]:
        raise RefusedError(refusal(missing))
    wanted = {name: value for name, value in wanted.items() if name not in missing}
    record = Record(node.path(asked["record"]))
    plan = planned(node, wanted, record.read())
    file = node.path(asked["file"]) if asked["file"] else None
    before, after = file_text(file), as_text(wanted)
    if not check_mode:
        carry_out(node, plan, record)
        keep(file, after)
    return {
        "changed": bool(plan.to) or (file is not None and before != after),
        "missing": missing,
        "settings": wanted,
        "diff": {"before": as_text(plan.now), "after": as_text(plan.to)},
    }


def one_line(value: object) -> str:
    """A value as the kernel's own, with single spaces. YAML makes a bool of what the kernel calls 1."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (list, tuple)):
        return " ".join(str(part) for part in value)
    return " ".join(str(value).split())


def why_missing(node: Node, name: str) -> Optional[str]:
    """Why a setting cannot be set here; None where it can."""
    try:
        mode = setting_path(node, name).stat().st_mode
    except OSError:
        return "is not there: this kernel does not have it, or not in a network name space"
    if not mode & 0o200:
        return "may not be written in this network name space"
    return None


def setting_path(node: Node, name: str) -> Path:
    """Where the kernel shows a setting. As with sysctl, a name with slashes may hold dots."""
    path = name if "/" in name else name.replace(".", "/")
    if ".." in path.split("/"):
        msg = f"{name} is no name of a setting"
        raise RefusedError(msg)
    return Path(node.path("proc/sys/" + path))


def refusal(missing: Dict[str, str]) -> str:
    said = "; ".join(f"{name} {why}" for name, why in sorted(missing.items()))
    return said + ". Nothing was set. Leave these out, or tolerate them (tolerate_missing) and see them named"


def planned(node: Node, wanted: Settings, kept: Dict[str, Any]) -> Plan:
    """What changes, and what will be remembered. Settings that are no longer asked for are given back."""
    # One that went away with its kernel or interface has nothing to be given back to.
    dropped = [name for name in kept if name not in wanted and why_missing(node, name) is None]
    now = {name: in_force(node, name) for name in [*wanted, *dropped]}
    goal = {**wanted, **{name: kept[name]["before"] for name in dropped}}
    to = {name: value for name, value in goal.items() if now[name] != value}
    remembered = {}
    for name, value in wanted.items():
        ours = kept.get(name)
        if ours is not None and (ours["ours"] == now[name] or name not in to):
            remembered[name] = {"before": ours["before"], "ours": value}
        elif name in to:
            remembered[name] = {"before": now[name], "ours": value}
    return Plan(now={name: now[name] for name in to}, to=to, kept=remembered)


def in_force(node: Node, name: str) -> str:
    return one_line(
        node.text(str(Path("proc/sys") / setting_path(node, name).relative_to(node.path("proc/sys"))))
    )


def carry_out(node: Node, plan: Plan, record: Record) -> None:
    """Set what changes and read it back; after a refusal everything is as it was before."""
    earlier = record.read()
    # First what was: should we be killed between two settings, it can still be given back.
    record.write({**earlier, **plan.kept})
    done: List[Tuple[str, str]] = []
    try:
        for name, value in plan.to.items():
            done.append((name, plan.now[name]))
            put(node, name, value)
    except RefusedError:
        for name, value in reversed(done):
            if in_force(node, name) != value:
                put(node, name, value)
        record.write(earlier)
        raise
    record.write(plan.kept)


def put(node: Node, name: str, value: str) -> None:
    """Set one value and read it back."""
    try:
        setting_path(node, name).write_text(value + "\n", encoding="utf-8")
    except OSError as error:
        msg = f"the kernel refuses {name} = {value}: {error.strerror}"
        raise RefusedError(msg) from error
    told = in_force(node, name)
    if told != value:
        msg = f"{name} is {told!r} after it was set to {value!r}: ask for what the kernel takes as it is"
        raise RefusedError(msg)


def as_text(settings: Settings) -> str:
    return "".join(f"{name} = {value}\n" for name, value in sorted(settings.items()))


def file_text(file: Optional[Path]) -> str:
    try:
        return file.read_text(encoding="utf-8") if file is not None else ""
    except FileNotFoundError:
        return ""


def keep(file: Optional[Path], text: str) -> None:
    """Write the file for every boot whole, or remove it when nothing is in it."""
    if file is None or file_text(file) == text:
        return
    if text:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text)
    else:
        file.unlink()


if __name__ == "__main__":
    main()
