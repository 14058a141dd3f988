"""Loads a congestion control that comes as a kernel module, and says what stands loaded, as one line of JSON.

``loading.py load DIGEST NAME [PARAMETER=VALUE …]`` takes ``modules/DIGEST.ko`` of the guest, or what was built on this
machine, unless it is loaded already; ``loading.py show DIGEST NAME`` reads back. DIGEST is that of its sources, NAME what
it registers itself as. No program of the machine is needed for it.
"""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import platform
import socket
import sys
from typing import Any, Dict, List, Optional

_FINIT_MODULE = {"x86_64": 313, "aarch64": 273}
"""Processor → the number of the system call, for which the C library has no function."""
_LOADED = "/run/fab_loaded"
_MODULES = "/sys/module"
_OFFERED = "/proc/sys/net/ipv4/tcp_available_congestion_control"
_WHY = {
    errno.EEXIST: "the kernel has a module or a congestion control of this name already",
    errno.ENOENT: "it needs a symbol that this kernel does not have",
    errno.ENOEXEC: "it was not built for this kernel",
    errno.ENOKEY: "this kernel takes modules that are signed with a key it knows",
    errno.EPERM: "this kernel takes no modules, or only signed ones",
    errno.EINVAL: "the module refuses to start, or does not take a parameter's value",
}


class RefusedError(Exception):
    """The kernel does not take the module, or it does not do what it was loaded for."""


def main(argv: List[str]) -> int:
    """Carry out one of the two; exit status 1 with the reason on standard error when that fails."""
    verb, digest, name = argv[:3]
    try:
        if verb == "load":
            _load(digest, name, dict(pair.split("=", 1) for pair in argv[3:]))
        print(json.dumps(_shown(digest, name), sort_keys=True))  # noqa: T201
    except (OSError, RefusedError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _load(digest: str, name: str, params: Dict[str, str]) -> None:
    if os.path.exists(_state(digest)):
        there = _read(digest)["asked"]
        if there != params:
            raise RefusedError("%s is loaded with the parameters %s, not %s" % (name, there, params))
        return
    path = _file(digest)
    if path is None:
        raise RefusedError(
            "%s: no module of these sources (%s) was built for this machine" % (name, digest[:16])
        )
    before = set(os.listdir(_MODULES))
    with open(path, "rb") as file:
        found = hashlib.sha256(file.read()).hexdigest()
        said = " ".join("%s=%s" % pair for pair in params.items())
        _insert(file.fileno(), said.encode())
    (module,) = set(os.listdir(_MODULES)) - before
    os.makedirs(_LOADED, exist_ok=True)
    state = {
        "source_sha256": digest,
        "module": module,
        "file_sha256": found,
        "asked": params,
        "address": _address(module),
    }
    with open(_state(digest), "w") as kept:
        json.dump(state, kept)


def _file(digest: str) -> Optional[str]:
    """What is to be loaded."""
    there = (os.path.join(folder, digest + ".ko") for folder in ("modules", _LOADED))
    return next((path for path in there if os.path.exists(path)), None)


def _insert(file: int, said: bytes) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(_FINIT_MODULE[platform.machine()], file, said, 0) != 0:
        number = ctypes.get_errno()
        why = _WHY.get(number)
        raise RefusedError(os.strerror(number) + (": " + why if why else ""))


def _shown(digest: str, name: str) -> Dict[str, Any]:
    """What is loaded; raise RefusedError when new connections cannot have it."""
    with socket.socket() as asking:
        try:
            asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            with open(_OFFERED) as file:
                offered = ", ".join(file.read().split())
            raise RefusedError(
                "the module registers no %s: the kernel now offers %s" % (name, offered)
            ) from None
    state = _read(digest)
    return dict(state, name=name, parameters=_parameters(state["module"]))


def _parameters(module: str) -> Dict[str, str]:
    """Those that may be read."""
    folder = os.path.join(_MODULES, module, "parameters")
    values = {}
    for parameter in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        with contextlib.suppress(OSError), open(os.path.join(folder, parameter)) as file:
            values[parameter] = file.read().strip()
    return values


def _address(module: str) -> str:
    """Where its code begins, to read an oops by."""
    with open("/proc/modules") as file:
        lines = [line.split() for line in file]
    return next((words[5] for words in lines if words[0] == module), "")


def _state(digest: str) -> str:
    return os.path.join(_LOADED, digest + ".json")


def _read(digest: str) -> Dict[str, Any]:
    with open(_state(digest)) as file:
        state = json.load(file)  # type: Dict[str, Any]
    return state


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
