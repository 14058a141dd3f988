"""Doing things inside the network name space of a node, from one process."""

import contextlib
import ctypes
import os
import subprocess
from typing import Any, Dict, Iterable, Iterator, List, NoReturn, Optional

_CLONE_NEWNET = 0x40000000
_OWN = "/proc/self/ns/net"
_libc = ctypes.CDLL(None, use_errno=True)


def new() -> int:
    """A network name space that lives as long as the file descriptor returned, and with this process at the latest."""
    home = os.open(_OWN, os.O_RDONLY)
    try:
        if _libc.unshare(_CLONE_NEWNET) != 0:
            _fail()
        made = os.open(_OWN, os.O_RDONLY)
        _enter(home)
    finally:
        os.close(home)
    return made


@contextlib.contextmanager
def made(nodes: Iterable[str]) -> "Iterator[Namespaces]":
    """In this block each of ``nodes`` has a name space of its own."""
    with contextlib.ExitStack() as stack:
        descriptors = {}
        for node in nodes:
            descriptors[node] = new()
            stack.callback(os.close, descriptors[node])
        yield Namespaces(descriptors)


class Namespaces:
    """Node name → the file descriptor of its network name space."""

    def __init__(self, descriptors: Dict[str, int]) -> None:
        self._home = os.open(_OWN, os.O_RDONLY)
        self._files = descriptors

    def has(self, node: str) -> bool:
        """Whether ``node`` is on this machine."""
        return node in self._files

    def path(self, node: Optional[str]) -> str:
        """Where other processes find the name space of ``node``, or (None) this machine's own."""
        return "/proc/%d/fd/%d" % (os.getpid(), self._home if node is None else self._files[node])

    @contextlib.contextmanager
    def inside(self, node: Optional[str]) -> Iterator[None]:
        """Sockets opened and processes started in this block belong to ``node``."""
        if node is None:
            yield
            return
        _enter(self._files[node])
        try:
            yield
        finally:
            _enter(self._home)

    def start(self, node: Optional[str], argv: Any, **options: Any) -> "subprocess.Popen[Any]":
        """Start a process on ``node``."""
        with self.inside(node):
            return subprocess.Popen(list(argv), **options)

    def ip(self, node: Optional[str], lines: List[str]) -> None:
        """Have ``ip`` carry out these lines on ``node``; raise OSError with them when it refuses one."""
        if not lines:
            return
        answer = self.run({"node": node, "argv": ["ip", "-batch", "-"], "stdin": "\n".join(lines) + "\n"})
        if answer["exit"] != 0:
            raise OSError("ip refused one of %s: %s" % (lines, answer["stderr"].strip()))

    def run(self, command: Dict[str, Any]) -> Dict[str, Any]:
        """Carry out a command record; return exit status, standard output and standard error."""
        stdin = command.get("stdin")
        try:
            process = self.start(
                command.get("node"),
                command["argv"],
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                universal_newlines=True,
            )
        except OSError as error:
            return {"exit": 127, "stdout": "", "stderr": "%s: %s" % (command["argv"][0], error.strerror)}
        try:
            out, err = process.communicate(stdin, timeout=command.get("timeout_s", 20.0))
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err += "\nstill running after %s s" % command.get("timeout_s", 20.0)
            return {"exit": 124, "stdout": out, "stderr": err}
        return {"exit": process.returncode, "stdout": out, "stderr": err}

    def answers(self, captures: Iterable[Dict[str, Any]]) -> Dict[str, Any]:
        """Carry out the command of each capture record; return by their names what was run and what came of it."""
        return {
            capture["name"]: dict(
                self.run(capture["command"]),
                argv=capture["command"]["argv"],
                node=capture["command"]["node"],
            )
            for capture in captures
        }


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        _fail()


def _fail() -> NoReturn:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))
