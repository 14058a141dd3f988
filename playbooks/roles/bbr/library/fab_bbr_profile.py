#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause

DOCUMENTATION = """
---
module: fab_bbr_profile
short_description: Sets what new fab_bbr2 connections are
description:
  - Sets the profile of C(fab_bbr2) in the running kernel, whether a module, BPF programs or the kernel itself
    carry it, and reads it back.
  - Connections that are open keep theirs. What is set at boot stays as it is.
options:
  profile:
    description: What new C(fab_bbr2) connections are.
    type: str
    choices: [v2alpha, draft01]
    required: true
attributes:
  check_mode:
    support: full
    description: Says whether it would set another profile.
author: The fabbbr authors
"""

EXAMPLES = """
- name: Have BBRv2 as in the IETF draft from now on
  fab_bbr_profile:
    profile: draft01
"""

RETURN = """
profile:
  description: The profile in force, in check mode the one that would be.
  type: str
  returned: success
  sample: draft01
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fab_bbr_node import Node
from ansible.module_utils.fab_node import RefusedError

ARGUMENT_SPEC = {"profile": {"type": "str", "choices": ["v2alpha", "draft01"], "required": True}}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    wanted = module.params["profile"]
    try:
        changed = ensure(Node(module.run_command), wanted, check_mode=module.check_mode)
        module.exit_json(changed=changed, profile=wanted)
    except RefusedError as refusal:
        module.fail_json(msg=str(refusal))


def ensure(node: Node, wanted: str, *, check_mode: bool) -> bool:
    """Have this profile in force; whether that was, or would be, a change."""
    if node.profile == wanted:
        return False
    # A dry run of a first run finds nothing yet that could have a profile.
    if check_mode:
        return True
    if node.carrier is None:
        msg = "this kernel does not offer fab_bbr2 and fab_bbr3: load the module or the BPF programs first"
        raise RefusedError(msg)
    said = set_profile(node, wanted)
    if node.profile != wanted:
        msg = f"the profile of fab_bbr2 stays {node.profile} instead of {wanted}: {said or 'no reason given'}"
        raise RefusedError(msg)
    return True


def set_profile(node: Node, wanted: str) -> str:
    """What was said against it; the profile in force tells whether it helped."""
    if node.carrier == "bpf":
        said: str = node.run_bpf_loader("profile", wanted).last_error
        return said
    try:
        node.path("sys/module/fab_bbr/parameters/profile").write_text(wanted, encoding="ascii")
    except OSError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main()
