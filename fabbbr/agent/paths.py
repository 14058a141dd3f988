"""Tries the network before any job: nodes stand on this machine for a while, with nothing emulated between them.

The first line of standard input says which (JSON: nodes, cables between them, interfaces of the machine that are
cables to elsewhere, MTU); each further one is a command in a node, answered by a line. When standard input ends, as it
does when a connection is lost, everything is as it was before.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import Any, Dict, Iterator, List, NoReturn

from . import namespace
from .attach import attached
from .namespace import Namespaces


def main() -> int:
    """Until standard input ends; exit status 1 when the nodes could not be made."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGHUP, _stop)
    asked = json.loads(sys.stdin.readline() or "null")
    if asked is None:
        return 0
    try:
        with _standing(asked) as inside, _servers() as servers:
            _say({"ok": True})
            for line in iter(sys.stdin.readline, ""):
                _say(_answer(inside, servers, json.loads(line)))
    except OSError as error:
        with contextlib.suppress(OSError):
            _say({"ok": False, "error": str(error)})
        return 1
    return 0


def _stop(*_: Any) -> NoReturn:
    raise SystemExit(1)


def _say(told: Dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def _answer(
    inside: Namespaces, servers: "List[subprocess.Popen[bytes]]", command: Dict[str, Any]
) -> Dict[str, Any]:
    if not command.get("serve"):
        return inside.run(command)
    try:
        servers.append(
            inside.start(
                command["node"],
                command["argv"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
    except OSError as error:
        return {"exit": 127, "stdout": "", "stderr": "%s: %s" % (command["argv"][0], error.strerror)}
    return {"exit": 0, "stdout": "", "stderr": ""}


@contextlib.contextmanager
def _servers() -> "Iterator[List[subprocess.Popen[bytes]]]":
    started = []  # type: List[subprocess.Popen[bytes]]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _standing(asked: Dict[str, Any]) -> Iterator[Namespaces]:
    with contextlib.ExitStack() as stack:
        descriptors = {}
        for node in asked["nodes"]:
            descriptors[node["name"]] = namespace.new()
            stack.callback(os.close, descriptors[node["name"]])
        inside = Namespaces(descriptors)
        _ip(inside, None, [_veth(inside, cable, asked["mtu"]) for cable in asked["cables"]])
        stack.enter_context(attached(inside, asked["sides"], asked["mtu"]))
        ends = [end for cable in asked["cables"] for end in (cable["a"], cable["b"])] + asked["sides"]
        for node in asked["nodes"]:
            ports = [end["name"] for end in ends if end["node"] == node["name"]]
            _ip(inside, node["name"], _lines(node, ports))
        yield inside


def _veth(inside: Namespaces, cable: Dict[str, Any], mtu: int) -> str:
    a, b = cable["a"], cable["b"]
    return "link add %s mtu %d netns %s type veth peer name %s mtu %d netns %s" % (
        a["name"], mtu, inside.path(a["node"]), b["name"], mtu, inside.path(b["node"]),
    )  # fmt: skip


def _lines(node: Dict[str, Any], ports: List[str]) -> List[str]:
    lines = ["link set lo up"]
    if node["address"] is not None:
        return lines + ["addr add %s dev %s" % (node["address"], ports[0]), "link set %s up" % ports[0]]
    lines += ["link add bridge0 type bridge", "link set bridge0 up"]
    for port in ports:
        lines += ["link set %s master bridge0" % port, "link set %s up" % port]
    return lines


def _ip(inside: Namespaces, node: Any, lines: List[str]) -> None:
    if not lines:
        return
    answer = inside.run({"node": node, "argv": ["ip", "-batch", "-"], "stdin": "\n".join(lines) + "\n"})
    if answer["exit"] != 0:
        raise OSError("ip refused one of %s: %s" % (lines, answer["stderr"].strip()))


if __name__ == "__main__":
    sys.exit(main())
