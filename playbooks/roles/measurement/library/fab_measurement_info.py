#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause

DOCUMENTATION = """
---
module: fab_measurement_info
short_description: What a node measures with
description:
  - Reads the kernel's release and timer, the versions of tools, and what the clock is made of.
  - Fails where a tool is missing, the node's own Python is older than 3.6, or the clock is too coarse.
options:
  required:
    description: Commands that must be there.
    type: list
    elements: str
    default: [ethtool, ping, ss, tc]
  optional:
    description: Commands whose versions are told where they are there.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    support: full
    description: It only reads.
author: The fabbbr authors
"""

EXAMPLES = """
- name: Ask the node what it measures with
  fab_measurement_info:
    optional: [iperf3]
  register: node

- name: Keep it with the results
  ansible.builtin.copy:
    content: "{{ node.machine | to_nice_json }}"
    dest: "results/{{ inventory_hostname }}.json"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = """
clock:
  description: The kernel's clock source, and the resolution of its monotonic clock.
  type: dict
  returned: success
  sample: {source: tsc, resolution_s: 1.0e-09}
machine:
  description:
    - C(kernel) with C(release), C(timer_hz) (ticks per second, null where it is not known) and
      C(config_sha256) (of its configuration below C(/boot), null where that is not there), and C(tools), tool
      → version line.
  type: dict
  returned: success
  sample:
    kernel: {release: 6.1.0-28-amd64, timer_hz: 250, config_sha256: null}
    tools: {ss: "ss utility, iproute2-6.1.0", python: Python 3.11.2}
"""

import gzip
import hashlib
import os
import re
import time
from typing import Any, Dict, Optional, Sequence

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fab_node import Node, RefusedError, version_lines

ARGUMENT_SPEC = {
    "required": {"type": "list", "elements": "str", "default": ["ethtool", "ping", "ss", "tc"]},
    "optional": {"type": "list", "elements": "str", "default": []},
}
PYTHON = "/usr/bin/python3"
"""The node's own, under which fabbbr's agent runs, whichever it is that Ansible found."""
OLDEST_PYTHON = (3, 6)
COARSEST_CLOCK_S = 1e-6
CLOCK_MONOTONIC_COARSE = 6
"""clock_gettime(2): its resolution is a tick of the kernel's timer."""


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    node, asked = Node(module.run_command), module.params
    try:
        told = tools(node, asked["required"], asked["optional"])
        module.exit_json(changed=False, machine={"kernel": kernel(node), "tools": told}, clock=clock(node))
    except RefusedError as refusal:
        module.fail_json(msg=str(refusal))


def tools(node: Node, required: Sequence[str], optional: Sequence[str]) -> Dict[str, str]:
    """Tool → version line, of those that are there."""
    lines = version_lines(node, [*required, *optional])
    missing = [command for command in required if lines[command] is None]
    if missing:
        msg = "missing on this node: {}; install them (the roles tcp_host and software_switch do)".format(
            ", ".join(missing)
        )
        raise RefusedError(msg)
    lines["python"] = python(node)
    return {tool: line for tool, line in lines.items() if line is not None}


def python(node: Node) -> str:
    said = node.run(PYTHON, "--version")
    match = re.fullmatch(r"Python (\d+)\.(\d+)\S*", (said.out or said.err).strip())
    if said.status != 0 or match is None:
        msg = f"{PYTHON} cannot be run ({said.reason}): install the distribution's python3"
        raise RefusedError(msg)
    if (int(match.group(1)), int(match.group(2))) < OLDEST_PYTHON:
        msg = f"{PYTHON} is {match.group()}: 3.6 or later is needed"
        raise RefusedError(msg)
    return match.group()


def kernel(node: Node) -> Dict[str, Any]:
    release = os.uname().release
    file = node.path("boot/config-" + release)
    try:
        config: Optional[bytes] = file.read_bytes()
    except OSError:
        config = None
    return {
        "release": release,
        "timer_hz": timer_hz(config if config is not None else running_config(node)),
        "config_sha256": hashlib.sha256(config).hexdigest() if config is not None else None,
    }


def running_config(node: Node) -> Optional[bytes]:
    """What the kernel says that it was configured with; None where it does not say so."""
    try:
        return gzip.decompress(node.path("proc/config.gz").read_bytes())
    except OSError:
        return None


def timer_hz(config: Optional[bytes]) -> Optional[int]:
    """Ticks per second, as configured, and without a configuration as the coarse clock shows them."""
    match = re.search(rb"^CONFIG_HZ=(\d+)$", config or b"", re.MULTILINE)
    if match:
        return int(match.group(1))
    try:
        return round(1 / time.clock_getres(CLOCK_MONOTONIC_COARSE))
    except (OSError, ZeroDivisionError):
        return None


def clock(node: Node) -> Dict[str, Any]:
    resolution_s = time.clock_getres(time.CLOCK_MONOTONIC)
    if resolution_s > COARSEST_CLOCK_S:
        msg = (
            f"the monotonic clock of this node has a resolution of {resolution_s:g} s, and times are "
            f"measured to {COARSEST_CLOCK_S:g} s: have the kernel use high resolution timers (highres=on)"
        )
        raise RefusedError(msg)
    source = node.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
    return {"source": source, "resolution_s": resolution_s}


if __name__ == "__main__":
    main()
