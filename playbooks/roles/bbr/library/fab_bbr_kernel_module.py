#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause

DOCUMENTATION = """
---
module: fab_bbr_kernel_module
short_description: Loads and unloads the kernel module fab_bbr
description:
  - Loads the C(fab_bbr) that is installed for the running kernel, in place of another build of it, or takes
    it out.
  - Where the kernel does not do it, fails with the kernel's reason and a remedy.
options:
  state:
    description: Whether the module is in the kernel now. What is loaded at boot stays as it is.
    type: str
    choices: [present, absent]
    default: present
  source:
    description:
      - The digest of the sources that the module must be made of, as the module itself gives it in
        C(/sys/module/fab_bbr/parameters/source).
      - Required with O(state=present).
    type: str
attributes:
  check_mode:
    support: full
    description:
      - Says whether it would load or unload. Whether the kernel takes the module shows only in loading it.
author: The fabbbr authors
"""

EXAMPLES = """
- name: Load the module that was just installed
  fab_bbr_kernel_module:
    source: 0f89adb8baed097b

- name: Unload it
  fab_bbr_kernel_module:
    state: absent
"""

RETURN = """
source:
  description:
    - The digest of the sources of the module that is loaded now, in check mode of the one that would be.
  type: str
  returned: success with O(state=present)
  sample: 0f89adb8baed097b
"""

import contextlib
import os
import re
from typing import Optional

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fab_bbr_node import ALGORITHMS, Node
from ansible.module_utils.fab_node import RefusedError

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "source": {"type": "str"},
}
OUR_NAMES = (*ALGORITHMS, "fab_bbr1", "fab_bbr1_cap3")
ON_OFF = {True: "on", False: "off", None: "unknown"}


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        required_if=[("state", "present", ("source",))],
        supports_check_mode=True,
    )
    node, wanted = Node(module.run_command), module.params["source"]
    try:
        if module.params["state"] == "present":
            changed = ensure_present(node, wanted, check_mode=module.check_mode)
            module.exit_json(changed=changed, source=wanted)
        module.exit_json(changed=ensure_absent(node, check_mode=module.check_mode))
    except RefusedError as refusal:
        module.fail_json(msg=str(refusal))


def ensure_present(node: Node, wanted: str, *, check_mode: bool) -> bool:
    """Have the build of these sources in the kernel; whether that was, or would be, a change."""
    if node.parameter("source") == wanted:
        return False
    ensure_absent(node, check_mode=check_mode)
    if not check_mode:
        load(node, wanted)
    return True


def ensure_absent(node: Node, *, check_mode: bool) -> bool:
    """Have no module fab_bbr in the kernel; whether that was, or would be, a change."""
    if not node.path("sys/module/fab_bbr").exists():
        return False
    if not node.loaded("fab_bbr"):
        msg = "fab_bbr is built into this kernel and cannot be taken out: boot another kernel"
        raise RefusedError(msg)
    if node.text("proc/sys/net/ipv4/tcp_congestion_control") in OUR_NAMES:
        msg = (
            "net.ipv4.tcp_congestion_control names an algorithm of fab_bbr: set another default first "
            "(sysctl net.ipv4.tcp_congestion_control=cubic)"
        )
        raise RefusedError(msg)
    if not check_mode:
        unload(node)
    return True


def load(node: Node, wanted: str) -> None:
    said = node.run("modprobe", "fab_bbr")
    if said.status != 0:
        words = (said.err.strip() or said.out.strip()) + "\n" + kernel_said(node)
        raise RefusedError(why_not_loaded(words, secure_boot=secure_boot(node), lockdown=lockdown(node)))
    source = node.parameter("source")
    if source != wanted:
        msg = (
            f"modprobe fab_bbr loaded source {source}, not the {wanted} just installed: another copy comes "
            f"first in /lib/modules/{os.uname().release} (modinfo -n fab_bbr names it); remove that"
        )
        raise RefusedError(msg)


def unload(node: Node) -> None:
    said = node.run("rmmod", "fab_bbr")
    if said.status != 0:
        remedy = "connections still use fab_bbr (ss -ti | grep -B1 fab_bbr); end them, or reboot"
        msg = f"{said.last_error}: {remedy}"
        raise RefusedError(msg)


def why_not_loaded(words: str, *, secure_boot: Optional[bool], lockdown: Optional[str]) -> str:
    """The reason why modprobe failed, with the remedy, from its own words and the kernel's."""
    said = words.strip().splitlines()[0].strip() if words.strip() else "no reason given"
    signature = re.search(
        r"key was rejected by service|required key not available|module verification failed"
        r"|lockdown: modprobe: unsigned module loading is restricted",
        words,
        re.IGNORECASE,
    )
    if signature or (lockdown not in {None, "none"} and "Operation not permitted" in words):
        state = f"secure boot {ON_OFF[secure_boot]}, lockdown {lockdown or 'unknown'}"
        return (
            f"the kernel takes only signed modules ({state}): {said}; enrol the key that DKMS signs with "
            "(mokutil --import /var/lib/dkms/mok.pub, or /var/lib/shim-signed/mok/MOK.der, then reboot and "
            "confirm at the console), switch secure boot off, or take bbr_way=bpf"
        )
    if "Unknown symbol" in words or "Invalid module format" in words or "disagrees about version" in words:
        reason = "the module was built against the headers of another kernel"
        return f"{reason}: {said}; reboot into the installed kernel"
    return f"modprobe fab_bbr failed: {said}"


def kernel_said(node: Node) -> str:
    lines = node.run("dmesg").out.splitlines()[-20:]
    return "\n".join(line for line in lines if "fab_bbr" in line or "ockdown" in line)


def secure_boot(node: Node) -> Optional[bool]:
    """Whether UEFI secure boot is on; None where the firmware does not say."""
    for variable in node.path("sys/firmware/efi/efivars").glob("SecureBoot-*"):
        with contextlib.suppress(OSError):
            return bool(variable.read_bytes()[-1:] == b"\x01")
    return None


def lockdown(node: Node) -> Optional[str]:
    match = re.search(r"\[(\w+)\]", node.text("sys/kernel/security/lockdown") or "")
    return match.group(1) if match else None


if __name__ == "__main__":
    main()
