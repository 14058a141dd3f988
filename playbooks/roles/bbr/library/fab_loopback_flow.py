#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause

DOCUMENTATION = """
---
module: fab_loopback_flow
short_description: Proves that an ordinary user's flow uses a congestion control
description:
  - Sends 4 MB over loopback with each congestion control, from a socket of the user C(nobody), and has C(ss)
    show it.
  - Fails where a user may not choose one, where a flow fails, and where C(ss) does not show what was chosen.
options:
  congestion_controls:
    description: The congestion controls, as the kernel names them.
    type: list
    elements: str
    required: true
attributes:
  check_mode:
    support: full
    description: It changes nothing on the node, and sends its flows in check mode too.
author: The fabbbr authors
"""

EXAMPLES = """
- name: Send a flow with each
  fab_loopback_flow:
    congestion_controls: [bbr, fab_bbr2, fab_bbr3]
  register: flows

- name: Show the bandwidth that fab_bbr3 has seen
  ansible.builtin.debug:
    msg: "{{ flows.sockets.fab_bbr3 }}"
"""

RETURN = """
sockets:
  description: What C(ss -ti) said of each flow's sender, by congestion control.
  type: dict
  returned: success
  sample:
    reno: "ESTAB 0 0 127.0.0.1:40312 127.0.0.1:33871 reno wscale:10,10 rto:201 bytes_sent:4000000"
"""

import contextlib
import os
import socket
import threading
import time
from typing import Iterator, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fab_bbr_node import Node
from ansible.module_utils.fab_node import RefusedError

ARGUMENT_SPEC = {"congestion_controls": {"type": "list", "elements": "str", "required": True}}
NOBODY = 65534
FLOW_BYTES = 4000000
FLOW_TIMEOUT_S = 60.0


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    node = Node(module.run_command)
    try:
        sockets = {name: flow(node, name) for name in module.params["congestion_controls"]}
        module.exit_json(changed=False, sockets=sockets)
    except RefusedError as refusal:
        module.fail_json(msg=str(refusal))


def flow(node: Node, name: str) -> str:
    """Send a flow with this congestion control; what ss says of its sender while it is open."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        threading.Thread(target=drain, args=(listener,), daemon=True).start()
        port = int(listener.getsockname()[1])
        with plain_sender(name) as sender:
            send(sender, port, name)
            # ACKs of the last packets may still be on their way through the softirq.
            time.sleep(0.1)
            said = node.run("ss", "-tinH", "dport", "=", f":{port}")
    shown = " ".join(said.out.split())
    reason = why_not_shown(name, shown or said.err.strip())
    if reason:
        raise RefusedError(reason)
    return shown


def plain_sender(name: str) -> socket.socket:
    """A socket of an ordinary user, who may choose allowed congestion controls only; root may choose any."""
    with plain_user():
        sender = socket.socket()
        try:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError as error:
            sender.close()
            msg = f"an ordinary user may not choose {name}: {error}"
            raise RefusedError(msg) from error
        return sender


@contextlib.contextmanager
def plain_user() -> Iterator[None]:
    own = os.geteuid()
    if own == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(own)


def send(sender: socket.socket, port: int, name: str) -> None:
    sender.settimeout(FLOW_TIMEOUT_S)
    try:
        sender.connect(("127.0.0.1", port))
        sender.sendall(bytes(FLOW_BYTES))
    except OSError as error:
        msg = f"a loopback flow with {name} failed: {error}"
        raise RefusedError(msg) from error


def drain(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        while connection.recv(1 << 20):
            pass


def why_not_shown(name: str, said: str) -> Optional[str]:
    """Why what ss said of a socket is no proof that it uses the congestion control; None where it is one."""
    if name in said.split():
        return None
    if said.startswith("ESTAB") and "bytes_sent:" not in said:
        # It fell back to /proc/net/tcp, which tells little. An experiment could not watch its flows either.
        return (
            "ss cannot look into sockets: this kernel has not loaded tcp_diag (modprobe tcp_diag; where "
            "loading is switched off, have it loaded at boot before that: /etc/modules-load.d)"
        )
    return f"ss does not show {name} on a flow that asked for it: {said}"


if __name__ == "__main__":
    main()
