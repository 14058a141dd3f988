"""In what a node's files differ from this machine's: user, name of the distribution, sshd, sudo.

Written as files and never by ``useradd``: the machine's own password files may be unreadable.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from fabbbr.record import Record

USER_ID = 1000
Numbering = Literal["slot", "path"]


class File(NamedTuple):
    """Contents and who may do what; ``user`` is both owner and group, by number."""

    text: str
    mode: int = 0o644
    user: int = 0


class Distribution(Record):
    """What programs ask of /etc/os-release, and how its images name network devices."""

    id: str
    name: str
    version: str
    codename: str
    like: str
    management_device: str
    data_device: str

    def device(self, number: int) -> str:
        """Name of the data device with this number, counted from 0."""
        return self.data_device.format(number + 7)


def _rocky(version: str, codename: str) -> Distribution:
    return Distribution(
        id="rocky", name="Rocky Linux", version=version, codename=codename, like="rhel centos fedora",
        management_device="eth0", data_device="ens{}",
    )  # fmt: skip


def _debian(version: str, codename: str) -> Distribution:
    return Distribution(
        id="debian", name="Debian GNU/Linux", version=version, codename=codename, like="",
        management_device="enp3s0", data_device="enp{}s0",
    )  # fmt: skip


def _ubuntu(version: str, codename: str) -> Distribution:
    return Distribution(
        id="ubuntu", name="Ubuntu", version=version, codename=codename, like="debian",
        management_device="enp3s0", data_device="enp{}s0",
    )  # fmt: skip


def _red_hat_like(name: str, title: str, version: str) -> Distribution:
    return Distribution(
        id=name, name=title, version=version, codename="", like="rhel fedora" if name == "centos" else "",
        management_device="eth0", data_device="ens{}",
    )  # fmt: skip


DISTRIBUTIONS = {
    "default_centos8_stream": _red_hat_like("centos", "CentOS Stream", "8"),
    "default_centos9_stream": _red_hat_like("centos", "CentOS Stream", "9"),
    "default_centos10_stream": _red_hat_like("centos", "CentOS Stream", "10"),
    "default_fedora_39": _red_hat_like("fedora", "Fedora Linux", "39"),
    "default_fedora_40": _red_hat_like("fedora", "Fedora Linux", "40"),
    "default_debian_11": _debian("11", "bullseye"),
    "default_debian_12": _debian("12", "bookworm"),
    "default_debian_13": _debian("13", "trixie"),
    "default_rocky_8": _rocky("8.10", "Green Obsidian"),
    "default_rocky_9": _rocky("9.4", "Blue Onyx"),
    "default_rocky_10": _rocky("10.0", "Red Quartz"),
    "default_ubuntu_20": _ubuntu("20.04", "focal"),
    "default_ubuntu_22": _ubuntu("22.04", "jammy"),
    "default_ubuntu_24": _ubuntu("24.04", "noble"),
    "default_ubuntu_25": _ubuntu("25.04", "plucky"),
}
_DOCKER = {
    name.replace("default_", "docker_"): distribution
    for name, distribution in DISTRIBUTIONS.items()
    if "rocky" in name or "ubuntu" in name
}
DISTRIBUTIONS |= _DOCKER
"""By the image's name on FABRIC; the BSD and Kali images are not among them."""

LOGINS = {
    "rocky": "rocky",
    "ubuntu": "ubuntu",
    "debian": "debian",
    "centos": "cloud-user",
    "fedora": "fedora",
}
BASTION_IMAGE = "default_rocky_9"


def _login(image: str, distribution: Distribution) -> str:
    return "centos" if image == "default_centos8_stream" else LOGINS[distribution.id]


LOGIN_OF = {image: _login(image, distribution) for image, distribution in DISTRIBUTIONS.items()}
"""Who logs in on a node, by its image."""


def os_release(distribution: Distribution) -> str:
    """The file that programs and Ansible ask which distribution this is."""
    codename = f" ({distribution.codename})" if distribution.codename else ""
    lines = {
        "NAME": distribution.name,
        "VERSION": f"{distribution.version}{codename}",
        "ID": distribution.id,
        "ID_LIKE": distribution.like,
        "VERSION_ID": distribution.version,
        "VERSION_CODENAME": distribution.codename if distribution.id in {"ubuntu", "debian"} else "",
        "PRETTY_NAME": f"{distribution.name} {distribution.version}{codename}",
    }
    return "".join(f'{key}="{value}"\n' for key, value in lines.items() if value)


def identity(distribution: Distribution) -> dict[str, File | None]:
    """The files by which a distribution is known; None for one that it does not have."""
    release = File(os_release(distribution))
    red_hat = "rhel" in distribution.like or distribution.id == "fedora"
    named = File(f"{distribution.name} release {distribution.version} ({distribution.codename})\n")
    ubuntu = File(
        f"DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE={distribution.version}\n"
        f"DISTRIB_CODENAME={distribution.codename}\n"
        f'DISTRIB_DESCRIPTION="Ubuntu {distribution.version} LTS"\n'
    )
    debian = {"ubuntu": "bookworm/sid\n", "debian": f"{distribution.version}.5\n"}.get(distribution.id)
    return {
        "etc/os-release": release,
        "usr/lib/os-release": release,
        "etc/redhat-release": named if red_hat else None,
        "etc/system-release": named if red_hat else None,
        f"etc/{distribution.id}-release": named if red_hat else None,
        "etc/lsb-release": ubuntu if distribution.id == "ubuntu" else None,
        "etc/debian_version": None if debian is None else File(debian),
    }


def accounts(user: str) -> dict[str, File]:
    """Password and group files with one person, who has no password."""
    people = {"root": (0, "/root", "/bin/bash"), user: (USER_ID, f"/home/{user}", "/bin/bash")}
    services = {"daemon": 1, "sys": 3, "nobody": 65534, "sshd": 74, "_apt": 42}
    passwd = [f"{name}:x:{number}:{number}::{home}:{shell}" for name, (number, home, shell) in people.items()]
    passwd += [
        f"{name}:x:{number}:{number}::/nonexistent:/usr/sbin/nologin" for name, number in services.items()
    ]
    groups = {name: number for name, (number, _, _) in people.items()} | services
    more = {"tty": 5, "disk": 6, "adm": 4, "shadow": 43, "utmp": 22, "staff": 50, "sudo": 27, "wheel": 10}
    members = {"sudo", "wheel", "adm"}
    return {
        "etc/passwd": File("\n".join(passwd) + "\n"),
        "etc/group": File(
            "".join(f"{name}:x:{number}:\n" for name, number in groups.items())
            + "".join(
                f"{name}:x:{number}:{user if name in members else ''}\n" for name, number in more.items()
            )
        ),
        # A star is no password and not a locked account, which sshd would turn away.
        "etc/shadow": File("".join(f"{name}:*:19700:0:99999:7:::\n" for name in (*people, *services)), 0o640),
        "etc/nsswitch.conf": File(
            "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
            "protocols: files\nservices: files\n"
        ),
    }


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PERMIT = (
    "auth sufficient pam_permit.so\naccount sufficient pam_permit.so\nsession sufficient pam_permit.so\n"
)


def sudo(user: str) -> dict[str, File]:
    """Everything without a password; it asks no directory service and keeps no record."""
    rules = (
        f'Defaults env_reset, !fqdn, !syslog, secure_path="{_PATH}"\n'
        f"root ALL=(ALL:ALL) ALL\n{user} ALL=(ALL:ALL) NOPASSWD: ALL\n"
    )
    return {
        "etc/sudoers": File(rules, 0o440),
        "etc/pam.d/sudo": File(_PERMIT),
        "etc/pam.d/sudo-i": File(_PERMIT),
    }


def sshd(*, user: str, jump_only: bool) -> str:
    """sshd_config of a node, or of the bastion, which lets its people through and nowhere else."""
    common = f"""\
Port 22
HostKey /etc/ssh/ssh_host_ed25519_key
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
UsePAM no
UseDNS no
PidFile none
MaxStartups 400
MaxSessions 400
Subsystem sftp internal-sftp
SetEnv PATH={_PATH}
"""
    jump = f"""\
AuthorizedKeysFile /etc/ssh/admitted/keys
AllowTcpForwarding yes
X11Forwarding no
Match User {user}
  ForceCommand /usr/sbin/nologin
  PermitTTY no
"""
    return common + (jump if jump_only else "AllowTcpForwarding yes\n")


HOSTNAMECTL = """\
#!/bin/sh
# What programs use of hostnamectl, on a node without systemd.
case "$1" in
set-hostname|hostname)
    [ -n "${2-}" ] || { hostname; exit 0; }
    hostname "$2" && echo "$2" > /etc/hostname
    grep -q "[[:space:]]$2\\$" /etc/hosts || echo "127.0.1.1 $2" >> /etc/hosts ;;
*)
    . /etc/os-release
    printf ' Static hostname: %s\\nOperating System: %s\\n' "$(hostname)" "$PRETTY_NAME" ;;
esac
"""

REBOOT = """\
#!/bin/sh
# The first process of a node is its sshd; the node is started again when it ends.
exec kill -TERM 1
"""


def files(
    image: str, user: str, hostname: str, host_key: str, *, jump_only: bool = False
) -> dict[str, File | None]:
    """Every file in which a machine differs from the one that carries it; None is a file that it lacks."""
    return {
        **identity(DISTRIBUTIONS[image]),
        **accounts(user),
        **({} if jump_only else sudo(user)),
        "etc/ssh/sshd_config": File(sshd(user=user, jump_only=jump_only)),
        "etc/ssh/ssh_host_ed25519_key": File(host_key, 0o600),
        "etc/hostname": File(f"{hostname}\n"),
        "etc/hosts": File(f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {hostname}\n"),
        "etc/resolv.conf": File(""),
        "usr/local/bin/hostnamectl": File(HOSTNAMECTL, 0o755),
        "usr/local/sbin/reboot": File(REBOOT, 0o755),
        # Where they are found fablib configures through them, and their daemons do not run here.
        "usr/bin/nmcli": None,
        "usr/sbin/netplan": None,
    }
