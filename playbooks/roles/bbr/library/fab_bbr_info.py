#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause

DOCUMENTATION = """
---
module: fab_bbr_info
short_description: What the running kernel offers of BBR, and from where
description:
  - Reads which congestion controls the running kernel offers, what carries C(fab_bbr2) and C(fab_bbr3) in
    it, and whether it takes modules.
attributes:
  check_mode:
    support: full
    description: It only reads.
author: The fabbbr authors
"""

EXAMPLES = """
- name: Read what the running kernel offers
  fab_bbr_info:
  register: node

- name: Say that version 3 is there
  ansible.builtin.debug:
    msg: "fab_bbr3 comes from {{ node.way }}, source {{ node.source }}"
  when: "'fab_bbr3' in node.offered"
"""

RETURN = """
allowed:
  description: The congestion controls that ordinary users may choose.
  type: list
  elements: str
  returned: success
  sample: [reno, cubic, fab_bbr2, fab_bbr3]
bbr_is_module:
  description: Whether the kernel's own C(tcp_bbr) is a loaded module.
  type: bool
  returned: success
bbr_module_version:
  description:
    - The version that the kernel's module C(tcp_bbr) gives itself. Google's kernels with BBRv3 offer it as
      C(bbr) too and say so only here. Null for BBRv1.
  type: str
  returned: success
modules_refused:
  description: Why this kernel takes no module at all; null where it may take one.
  type: str
  returned: success
offered:
  description: The congestion controls that the kernel offers.
  type: list
  elements: str
  returned: success
  sample: [reno, cubic, bbr, fab_bbr2, fab_bbr3]
profile:
  description: What a new C(fab_bbr2) connection is; null where there is none.
  type: str
  returned: success
  sample: v2alpha
source:
  description:
    - The digest of the sources that C(fab_bbr2) and C(fab_bbr3) were made of; null where there are none.
  type: str
  returned: success
  sample: 0f89adb8baed097b
versions:
  description: The versions whose sources are in C(/usr/src).
  type: list
  elements: str
  returned: success
  sample: ["0.2.0"]
way:
  description:
    - How C(fab_bbr2) and C(fab_bbr3) got into the kernel, C(dkms), C(make), C(bpf), C(kernel) where they are
      built in, or C(unknown). Null where it does not offer both.
  type: str
  returned: success
  sample: dkms
"""

from typing import Any, Dict, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fab_bbr_node import Node


def main() -> None:
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.exit_json(changed=False, **survey(Node(module.run_command)))


def survey(node: Node) -> Dict[str, Any]:
    """The return values of this module."""
    return {
        "allowed": node.words("proc/sys/net/ipv4/tcp_allowed_congestion_control"),
        "bbr_is_module": node.loaded("tcp_bbr"),
        "bbr_module_version": node.text("sys/module/tcp_bbr/version"),
        "modules_refused": modules_refused(node),
        "offered": node.offered,
        "profile": node.profile,
        "source": node.source,
        "versions": sorted(
            folder.name.partition("-")[2] for folder in node.path("usr/src").glob("fab_bbr-*")
        ),
        "way": way(node),
    }


def modules_refused(node: Node) -> Optional[str]:
    if not node.path("proc/modules").exists():
        return "the kernel was built without loadable modules (there is no /proc/modules)"
    if node.text("proc/sys/kernel/modules_disabled") == "1":
        return "loading modules is switched off until the next boot (kernel.modules_disabled = 1)"
    return None


def way(node: Node) -> Optional[str]:
    carrier: Optional[str] = node.carrier
    if carrier != "module":
        return carrier
    return "dkms" if node.path("var/lib/dkms/fab_bbr").exists() else "make"


if __name__ == "__main__":
    main()
