#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause

DOCUMENTATION = """
---
module: fab_commands
short_description: Which commands a node has, and their versions
description:
  - Asks each command for its version. What is there need not be installed, whatever package it came from.
options:
  commands:
    description: The commands.
    type: list
    elements: str
    required: true
attributes:
  check_mode:
    support: full
    description: It only reads.
author: The fabbbr authors
"""

EXAMPLES = """
- name: Ask for iperf3
  fab_commands:
    commands: [iperf3]
  register: asked

- name: Show the oldest it could be
  ansible.builtin.debug:
    msg: "{{ asked.versions.iperf3 }}"
"""

RETURN = """
lines:
  description:
    - Command → the first line that it says of its version; null where it is not there or does not work.
  type: dict
  returned: success
  sample: {iperf3: "iperf 3.16 (cJSON 1.7.15)"}
missing:
  description: The commands that are not there or do not work.
  type: list
  elements: str
  returned: success
  sample: []
versions:
  description: Command → the first number in that line; null where there is none.
  type: dict
  returned: success
  sample: {iperf3: "3.16"}
"""

import re
from typing import Dict, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fab_node import Node, version_lines

ARGUMENT_SPEC = {"commands": {"type": "list", "elements": "str", "required": True}}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    lines = version_lines(Node(module.run_command), module.params["commands"])
    missing = sorted(name for name, line in lines.items() if line is None)
    module.exit_json(changed=False, lines=lines, missing=missing, versions=numbers(lines))


def numbers(lines: Dict[str, Optional[str]]) -> Dict[str, Optional[str]]:
    """Command → the first number with a dot in its line.

    >>> numbers({"iperf3": "iperf 3.16 (cJSON 1.7.15)", "ss": None})
    {'iperf3': '3.16', 'ss': None}
    """
    found = {name: re.search(r"\d+(\.\d+)+", line or "") for name, line in lines.items()}
    return {name: match.group() if match else None for name, match in found.items()}


if __name__ == "__main__":
    main()
