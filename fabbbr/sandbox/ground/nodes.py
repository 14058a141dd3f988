"""A node: a network name space, a root file system, and a first process in name spaces of its own."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from ipaddress import IPv4Interface, IPv6Interface
from pathlib import Path

from fabbbr.errors import BackendError
from fabbbr.record import Record
from fabbbr.sandbox.granted import Machine, Port
from fabbbr.sandbox.ground import images, tools
from fabbbr.sandbox.ground.cables import MANAGEMENT_BRIDGE, MANAGEMENT_GATEWAYS, MTU_BYTES, PLANT
from fabbbr.sandbox.ground.root import Root, new_host_key

_SCRIPT = Path(__file__).with_name("node.sh")
_END_S = 10.0
_SETTINGS = {
    # Addresses are there at once: nobody else could have them.
    "net.ipv6.conf.all.accept_dad": "0",
    "net.ipv6.conf.default.accept_dad": "0",
    # Everybody may ping, as distributions let them: not every file system carries the program's capability.
    "net.ipv4.ping_group_range": "0 2147483647",
}


class Socket(Record):
    """Where a port's cable ends: the device in the node, and the one in the plant."""

    port: Port
    device: str
    end: str


class Node:
    """A machine that runs; ``ended`` is called, from a thread of its own, when it ends by itself."""

    def __init__(self, machine: Machine, number: int, folder: Path, ended: Callable[[str], None]) -> None:
        self.machine = machine
        self.namespace = f"n{number}"
        self.sockets: list[Socket] = []
        self._distribution = images.DISTRIBUTIONS[machine.image]
        self._root = Root(folder)
        self._log = folder.with_suffix(".log")
        self._ended = ended
        self._process: subprocess.Popen[bytes] | None = None
        self._devices = 0
        self._keys = list(machine.keys)

    def make(self) -> None:
        """Its files, once; ``boot`` may then come more than once."""
        machine = self.machine
        trusted = () if machine.ssh == "rejects_key" else machine.keys
        files = images.files(machine.image, machine.user, machine.name, new_host_key())
        self._root.make(files, machine.user, trusted)

    def boot(self) -> None:
        """A fresh network name space with the management interface, and the first process."""
        tools.run("ip", "netns", "add", self.namespace)
        tools.write_sysctls(self.namespace, _SETTINGS)
        tools.ip(self.namespace, ["link set lo up"])
        if self.machine.management is not None:
            self._manage(self.machine.management)
        self._process = self._start()
        threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()

    def halt(self) -> None:
        """End every process; the name space and what is in it stay."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(_END_S)

    def die(self) -> None:
        """As a machine without power does: nobody is told, and nothing answers."""
        if self.machine.management is not None:
            tools.ip(PLANT, [f"link set {self._management_end} down"])
        for socket in self.sockets:
            tools.ip(PLANT, [f"link set {socket.end} down"])
        self.halt()

    @property
    def _management_end(self) -> str:
        return f"m{self.namespace[1:]}"

    def unwire(self) -> None:
        """Take the network name space and its cables away.

        The cables first and by name: the kernel takes a name space apart when it has the time, and until then
        the names of their far ends are taken.
        """
        ends = [socket.end for socket in self.sockets]
        if self.machine.management is not None:
            ends.append(self._management_end)
        for end in ends:
            # A job has the device in a name space of its own; where that ended, no cable is left.
            tools.succeeds("ip", "-n", PLANT, "link", "del", end)
        tools.run("ip", "netns", "del", self.namespace)

    def remove(self) -> None:
        """Nothing of it is left but its log."""
        self.halt()
        self.unwire()
        self._root.remove()

    def socket(self, port: Port, end: str) -> None:
        """Give the node a network device and lay its cable to ``end`` in the plant."""
        device = self._distribution.device(self._devices)
        self._devices += 1
        self.sockets.append(Socket(port=port, device=device, end=end))
        self._wire(device, end, port.mac)

    def rewire(self) -> None:
        """After a restart: the same devices with the same addresses of hardware, and no others."""
        for socket in self.sockets:
            self._wire(socket.device, socket.end, socket.port.mac)

    def unsocket(self, port: str) -> None:
        """Take a network device out."""
        gone = next(socket for socket in self.sockets if socket.port.id == port)
        self.sockets.remove(gone)
        tools.ip(self.namespace, [f"link del {gone.device}"])

    def authorize(self, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        """Change whom it lets in."""
        self._keys = [key for key in [*self._keys, *add] if key not in remove]
        allowed = self._root.path / "home" / self.machine.user / ".ssh" / "authorized_keys"
        allowed.write_text("".join(f"{key}\n" for key in self._keys))

    def _wire(self, device: str, end: str, mac: str) -> None:
        made = (
            f"link add {device} address {mac} netns {self.namespace} "
            f"type veth peer name {end} mtu {MTU_BYTES} netns {PLANT}"
        )
        tools.ip(None, [made])
        tools.ip(PLANT, [f"link set {end} up"])

    def _manage(self, address: IPv4Interface | IPv6Interface) -> None:
        device, end = self._distribution.management_device, self._management_end
        tools.ip(None, [f"link add {device} netns {self.namespace} type veth peer name {end} netns {PLANT}"])
        tools.ip(PLANT, [f"link set {end} master {MANAGEMENT_BRIDGE} up"])
        gateway = next(g.ip for g in MANAGEMENT_GATEWAYS if g.version == address.version)
        everywhere, nodad = ("::/0", " nodad") if address.version == 6 else ("0.0.0.0/0", "")
        tools.ip(
            self.namespace,
            [
                f"addr add {address} dev {device}{nodad}",
                f"link set {device} up",
                f"route add {everywhere} via {gateway} dev {device}",
            ],
        )

    def _start(self) -> subprocess.Popen[bytes]:
        machine = self.machine
        ssh = {"open": "open", "rejects_key": "open", "never": "never", "late": str(machine.ssh_after_s)}
        with self._log.open("ab") as log:
            return subprocess.Popen(
                (
                    *("nsenter", f"--net=/run/netns/{self.namespace}", "unshare"),
                    *("--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--"),
                    *("/bin/sh", str(_SCRIPT), str(self._root.path), machine.name, ssh[machine.ssh]),
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        if self._process is process:
            self._ended(self.machine.id)

    def last_words(self) -> str:
        """The end of what its first process printed, for an error."""
        try:
            return self._log.read_text(errors="replace")[-500:].strip()
        except OSError as error:
            message = f"sandbox: the log of {self.machine.name} cannot be read: {error}"
            raise BackendError(message) from error
