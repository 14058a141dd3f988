"""The first program of a private world: make FABRIC in it, run a command beside it, leave nothing.

``python -m fabbbr.sandbox.inside [options] -- COMMAND`` expects network, mount and pid name spaces of its
own and to be root in them; :mod:`fabbbr.sandbox.outside` makes these on a host.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path

from fabbbr import bundled
from fabbbr.errors import EnvironmentUnfitError, FabbbrError
from fabbbr.sandbox import authority, home, names
from fabbbr.sandbox.control import graph, plane, server
from fabbbr.sandbox.control.sites import POSITIONS
from fabbbr.sandbox.ground import images, tools
from fabbbr.sandbox.ground.namespaces import NameSpaces
from fabbbr.sandbox.journal import Journal
from fabbbr.sandbox.options import add_options
from fabbbr.sandbox.settings import Settings, from_arguments

WORLD = Path("/run/fabbbr")
"""On a file system in memory that covers /run: sockets of the machine's services are out of reach."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status of the command, or of what kept it from running."""
    parser = argparse.ArgumentParser(prog="python -m fabbbr.sandbox.inside", description=__doc__)
    add_options(parser)
    parser.add_argument("argv", nargs="+", metavar="COMMAND")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the command's
    try:
        return _as_first_process(from_arguments(arguments), tuple(arguments.argv))
    except FabbbrError as error:
        print(f"fabbbr: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_status


def _as_first_process(settings: Settings, command: tuple[str, ...]) -> int:
    """Let a child do everything, and bury what others leave: a first process inherits all orphans."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = _run(settings, command)
        except FabbbrError as error:
            print(f"fabbbr: {error}", file=sys.stderr)  # noqa: T201
            status = error.exit_status
        except BaseException:  # noqa: BLE001 - below nobody is left to tell of it
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    while True:
        ended, status = os.wait()
        if ended == child:
            return os.waitstatus_to_exitcode(status) % 256


def _run(settings: Settings, command: tuple[str, ...]) -> int:
    refuse_a_way_out()
    threading.Thread(target=graph.load, daemon=True).start()
    if settings.log is not None:
        settings.log.mkdir(parents=True, exist_ok=True)
    here = Path.cwd()
    _private_files()
    _private_tmp(here, *([] if settings.log is None else [settings.log]), *bundled.read_from())
    os.chdir(here)
    journal = Journal(settings.log or WORLD / "log")
    certificates = authority.issue(WORLD, names.CONTROL_PLANE)
    ground = NameSpaces(WORLD / "ground", POSITIONS, journal.event)
    ground.start()
    made = plane.build(settings, ground, journal, images.LOGIN_OF.get)
    server.serve(made.application, certificates.server)
    user = WORLD / "home" / "fabric"
    home.furnish(user, made.token, images.LOGIN_OF)
    return _command(command, home.environment(user, certificates.authority))


def refuse_a_way_out() -> None:
    """EnvironmentUnfitError when a packet could leave this world: FABRIC's real hosts have our names."""
    for family in ("-4", "-6"):
        routes = json.loads(tools.run("ip", family, "-json", "route", "show", "default") or "[]")
        if routes:
            message = (
                f"sandbox: there is a default route (by {routes[0].get('dev')}), so a mistake could reach "
                "the real FABRIC; start it with `fabbbr sandbox`, which makes a network of its own"
            )
            raise EnvironmentUnfitError(message)


def _private_files() -> None:
    """Cover /run, and say in /etc/hosts who is who here."""
    tools.run("mount", "--make-rprivate", "/")
    resolver = Path("/etc/resolv.conf").resolve()
    tools.run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    WORLD.mkdir()
    known = {
        names.CONTROL_ADDRESS: " ".join(names.CONTROL_PLANE),
        names.BASTION_ADDRESS: names.BASTION,
        "127.0.0.1": f"localhost {os.uname().nodename}",
    }
    hosts = WORLD / "hosts"
    hosts.write_text("".join(f"{address} {who}\n" for address, who in known.items()))
    tools.run("mount", "--bind", str(hosts), "/etc/hosts")
    _ask_nobody(resolver)
    tools.ip(None, ["link set lo up", f"addr replace {names.CONTROL_ADDRESS}/8 dev lo"])


def _ask_nobody(resolver: Path) -> None:
    """No name server: what /etc/hosts does not know there is not."""
    if resolver.is_relative_to("/run"):  # a link there dangles since /run is covered
        resolver.parent.mkdir(parents=True, exist_ok=True)
        resolver.touch()
    elif resolver.exists():
        nobody = WORLD / "resolv.conf"
        nobody.touch()
        tools.run("mount", "--bind", str(nobody), str(resolver))


def _private_tmp(*kept: Path) -> None:
    """Let what is written to /tmp stay here, except in the folders that the caller wants ``kept``.

    fablib has files there with fixed names, which sandboxes side by side must not share. An overlay does not
    show what is mounted below /tmp: in a guest the programs themselves are, of which not all is read yet.
    """
    tmp, own = Path("/tmp"), WORLD / "tmp"  # noqa: S108 - the folder itself is meant
    for part in ("outer", "upper", "work"):
        (own / part).mkdir(parents=True)
    (own / "upper").chmod(0o1777)
    tools.run("mount", "--rbind", str(tmp), str(own / "outer"))
    layers = f"lowerdir={own / 'outer'},upperdir={own / 'upper'},workdir={own / 'work'}"
    tools.run("mount", "-t", "overlay", "-o", layers, "overlay", str(tmp))
    for folder in sorted(kept):  # those above before those below, which they would hide
        if tmp in folder.parents:
            tools.run("mount", "--rbind", str(own / "outer" / folder.relative_to(tmp)), str(folder))
    tools.run("umount", "--recursive", str(own / "outer"))


def _command(command: tuple[str, ...], environment: dict[str, str]) -> int:
    try:
        running = subprocess.Popen(command, env=environment, preexec_fn=_heed_interrupts)  # noqa: PLW1509
    except OSError as error:
        message = f"sandbox: cannot run {command[0]}: {error.strerror}; name a program that there is"
        raise EnvironmentUnfitError(message) from error
    signal.signal(signal.SIGTERM, lambda *_: running.terminate())
    status = running.wait()
    return status if status >= 0 else 128 - status


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
