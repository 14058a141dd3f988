"""Tries the network before any job: nodes stand on this machine for a while, with nothing emulated between them.

The first line of standard input says which (JSON: nodes, cables between them, interfaces of the machine that are
cables to elsewhere, MTU); each further one is a command in a node, answered by a line. When standard input ends, as it
does when a connection is lost, everything is as it was before.
"""

import contextlib
import json
import select
import signal
import subprocess
import sys
import time
from typing import Any, Dict, Iterator, List, NoReturn

from . import namespace
from .attach import attached
from .namespace import Namespaces

_LOOK_S = 0.2
_BRIDGE = "link add bridge0 address 02:fb:fb:fb:fb:fb type bridge"
"""With an address of its own: else it has that of a port, by which the port is looked for in the end."""


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
    serve = command.get("serve", False)
    out = subprocess.DEVNULL if serve else subprocess.PIPE
    try:
        process = inside.start(
            command["node"], command["argv"], stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    except OSError as error:
        return {"exit": 127, "stdout": "", "stderr": "%s: %s" % (command["argv"][0], error.strerror)}
    if serve:
        servers.append(process)
        return {"exit": 0, "stdout": "", "stderr": ""}
    return _awaited(process, command["timeout_s"])


def _awaited(process: "subprocess.Popen[bytes]", timeout_s: float) -> Dict[str, Any]:
    """What it wrote and ended with; it is ended after its time, and with whoever asked for it."""
    until = time.monotonic() + timeout_s
    late = ""
    while True:
        try:
            out, err = process.communicate(timeout=_LOOK_S)
        except subprocess.TimeoutExpired:
            # Nothing is asked before this is answered: what can be read now is the end.
            gone = bool(select.select([sys.stdin], [], [], 0)[0])
            if gone or time.monotonic() > until:
                process.kill()
                late = "\nstill running after %s s" % timeout_s
            if gone:
                raise SystemExit(1) from None
            continue
        status = 124 if late else process.returncode
        return {
            "exit": status,
            "stdout": out.decode("utf-8", "replace"),
            "stderr": err.decode("utf-8", "replace") + late,
        }


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
    with namespace.made(node["name"] for node in asked["nodes"]) as inside:
        inside.ip(None, [_veth(inside, cable, asked["mtu"]) for cable in asked["cables"]])
        ends = [end for cable in asked["cables"] for end in (cable["a"], cable["b"])] + asked["sides"]
        with attached(inside, asked["sides"], asked["mtu"]):
            for node in asked["nodes"]:
                ports = [end["name"] for end in ends if end["node"] == node["name"]]
                inside.ip(node["name"], _lines(node, ports))
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
    lines += [_BRIDGE, "link set bridge0 up"]
    for port in ports:
        lines += ["link set %s master bridge0" % port, "link set %s up" % port]
    return lines


if __name__ == "__main__":
    sys.exit(main())
