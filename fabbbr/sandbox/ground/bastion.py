"""The bastion: the one machine with a leg in the client's world and a leg in the management network."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fabbbr.sandbox import names
from fabbbr.sandbox.ground import images, tools
from fabbbr.sandbox.ground.cables import MANAGEMENT_BRIDGE, PLANT
from fabbbr.sandbox.ground.root import Root, new_host_key

_NAMESPACE = "bastion"
_ADDRESSES = ("198.19.0.2/16", "2001:db8:fab::2/48")
_CLIENT_DEVICE = "client0"
_SCRIPT = Path(__file__).with_name("node.sh")
_END_S = 10.0


class Bastion:
    """It lets those pass whose bastion key is admitted, to nodes only, and gives nobody a shell."""

    def __init__(self, folder: Path) -> None:
        self._root = Root(folder)
        self._log = folder.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Make it and let it run."""
        key = new_host_key()
        files = images.files(images.BASTION_IMAGE, names.BASTION_LOGIN, _NAMESPACE, key, jump_only=True)
        files["etc/ssh/admitted/keys"] = images.File("")
        self._root.make(files, names.BASTION_LOGIN, ())
        self._wire()
        self.run()

    def admit(self, keys: tuple[str, ...]) -> None:
        """These keys and no others."""
        admitted = self._root.path / "etc/ssh/admitted/keys"
        admitted.write_text("".join(f"{key}\n" for key in keys))

    def run(self) -> None:
        """Open its door."""
        if self._process is not None:
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                (
                    *("nsenter", f"--net=/run/netns/{_NAMESPACE}", "unshare"),
                    *("--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--"),
                    *("/bin/sh", str(_SCRIPT), str(self._root.path), "bastion-1", "open"),
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def halt(self) -> None:
        """Close its door, and every connection through it."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(_END_S)

    def _wire(self) -> None:
        tools.run("ip", "netns", "add", _NAMESPACE)
        quiet = {"net.ipv6.conf.all.accept_dad": "0", "net.ipv6.conf.default.accept_dad": "0"}
        tools.write_sysctls(_NAMESPACE, quiet)
        tools.ip(
            None,
            [
                f"link add {_CLIENT_DEVICE} type veth peer name eth1 netns {_NAMESPACE}",
                f"addr add {names.CLIENT_ADDRESS}/{names.CLIENT_PREFIX} dev {_CLIENT_DEVICE}",
                f"link set {_CLIENT_DEVICE} up",
                f"link add eth0 netns {_NAMESPACE} type veth peer name mbastion netns {PLANT}",
            ],
        )
        tools.ip(PLANT, [f"link set mbastion master {MANAGEMENT_BRIDGE} up"])
        v4, v6 = _ADDRESSES
        tools.ip(
            _NAMESPACE,
            [
                *("link set lo up", f"addr add {v4} dev eth0", f"addr add {v6} dev eth0 nodad"),
                f"addr add {names.BASTION_ADDRESS}/{names.CLIENT_PREFIX} dev eth1",
                *("link set eth0 up", "link set eth1 up"),
            ],
        )
