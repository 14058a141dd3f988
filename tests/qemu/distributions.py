"""The distributions that the role is tested on, made into disks once and kept below the user's cache folder.

A disk holds the distribution's own kernel, its system and, as a package archive in /srv/packages, the
packages that the role asks for. So a test needs no network, and the role's installing is real all the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fabbbr.backends.guest.apt import archive_here, private_apt

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fabbbr" / "qemu"
TOOLS = (
    "mmdebstrap",
    "qemu-system-x86_64",
    "qemu-img",
    "mke2fs",
    "debugfs",
    "dpkg-scanpackages",
    "ssh-keygen",
)
BUILD_TIMEOUT_S = 1200
SYSTEM = (
    "apt", "initramfs-tools", "systemd-sysv", "udev", "dbus", "openssh-server", "python3", "python3-apt",
    "sudo", "iproute2", "kmod", "ca-certificates",
)  # fmt: skip
UBUNTU_KEYRING = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")

# Runs for mmdebstrap with the root as its first argument. $RELEASE is the kernel's, found there.
FURNISH = r"""
set -eu
root=$1
chroot "$root" useradd --create-home --shell /bin/bash tester
echo 'tester ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/tester"
chmod 440 "$root/etc/sudoers.d/tester"
install -d -m 700 "$root/home/tester/.ssh"
install -m 600 "$KEY" "$root/home/tester/.ssh/authorized_keys"
chroot "$root" chown -R tester: /home/tester/.ssh
printf '[Match]\nType=ether\n[Network]\nAddress=10.0.2.15/24\n' >"$root/etc/systemd/network/10-test.network"
chroot "$root" systemctl enable systemd-networkd ssh
echo node >"$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 node\n' >"$root/etc/hosts"

chroot "$root" apt-get clean
release=$(ls "$root/lib/modules")
wanted=$(echo "$WANTED" | sed "s/RELEASE/$release/g")
# shellcheck disable=SC2086
chroot "$root" apt-get --quiet --yes --no-install-recommends --download-only install $wanted
mkdir "$root/srv/packages"
mv "$root"/var/cache/apt/archives/*.deb "$root/srv/packages/"
(cd "$root/srv/packages" && dpkg-scanpackages . >Packages 2>/dev/null)
rm -f "$root"/etc/apt/sources.list.d/* "$root/etc/apt/apt.conf.d/99mmdebstrap"
echo 'deb [trusted=yes] file:/srv/packages ./' >"$root/etc/apt/sources.list"

cp "$root/boot/vmlinuz-$release" "$OUT/kernel"
cp "$root/boot/initrd.img-$release" "$OUT/initrd"
rm -rf "$root"/var/lib/apt/lists/*
# Without what mmdebstrap mounted there for the packages' scripts.
export root OUT
unshare --mount sh -euc '
for mounted in proc sys dev; do
	umount --recursive --lazy "$root/$mounted" || true
done
mke2fs -q -t ext4 -L root -d "$root" "$OUT/disk" 4G'
"""

# Likewise; what it builds is for the kernel whose headers are among the packages.
BUILD_MODULE = r"""
set -eu
root=$1
mkdir -p "$root/srv"
cp -r "$WORK/packages" "$WORK/files" "$root/srv"
echo 'deb [trusted=yes] file:/srv/packages ./' >"$root/etc/apt/sources.list.d/local.list"
chroot "$root" apt-get --quiet update
chroot "$root" sh -euc '
apt-get --quiet --yes --no-install-recommends install $(cd /srv/packages && ls linux-headers-*_*.deb | cut -d_ -f1)
make -C /srv/files KDIR="$(ls -d /lib/modules/*/build)" modules
'
cp "$root/srv/files/fab_bbr.ko" "$WORK/"
"""  # noqa: E501


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """A release, named as FABRIC names its image, and what its node needs to boot and to be asked for."""

    name: str
    suite: str
    kernel: str
    wanted: tuple[str, ...]
    """Packages that the role may ask for; RELEASE stands for the running kernel's."""
    bpf: bool
    """Whether its kernel takes a congestion control as BPF that sets the pacing rate."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """A disk with the kernel and initial RAM disk that boot it, and the key that opens it."""

    distribution: Distribution
    folder: Path
    key: Path


def _debian(number: int, suite: str, *, bpf: bool) -> Distribution:
    return Distribution(
        name=f"debian_{number}",
        suite=suite,
        kernel="linux-image-amd64",
        wanted=("dkms", "linux-headers-RELEASE", "gcc", "make")
        + ("bpftool", "clang", "libbpf-dev", "libc6-dev") * bpf,
        bpf=bpf,
    )


def _ubuntu(number: int, suite: str) -> Distribution:
    return Distribution(
        name=f"ubuntu_{number}",
        suite=suite,
        kernel="linux-image-virtual",
        wanted=("dkms", "linux-headers-RELEASE", "gcc", "make"),
        bpf=False,
    )


DISTRIBUTIONS = {
    each.name: each
    for each in (
        _debian(11, "bullseye", bpf=False),
        _debian(12, "bookworm", bpf=True),
        _debian(13, "trixie", bpf=True),
        _ubuntu(20, "focal"),
        _ubuntu(22, "jammy"),
        _ubuntu(24, "noble"),
    )
}


TESTED = os.environ.get("FABBBR_QEMU", "debian_12 debian_13 ubuntu_22 ubuntu_24").split()
"""Which of them the tests use."""


def image(distribution: Distribution) -> Image:
    """The distribution's disk, made now if it is not there."""
    recipe = hashlib.sha256(repr((distribution, SYSTEM, FURNISH)).encode()).hexdigest()[:12]
    folder = CACHE / f"{distribution.name}-{recipe}"
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        message = f"these tools are missing: {' '.join(missing)}; make test-qemu installs them"
        raise FileNotFoundError(message)
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix=f".{distribution.name}.") as work:
            _make(distribution, Path(work))
            made = Path(work, "out")
            made.rename(folder)
    return Image(distribution=distribution, folder=folder, key=folder / "key")


def module(image: Image, files: Path, work: Path) -> Path:
    """``fab_bbr.ko`` for the image's kernel, built in its distribution's root: the machine takes minutes.

    ``files`` are the role's; ``work`` is an empty folder.
    """
    # With the packages that the disk has, for the archive may have gone on to another kernel.
    subprocess.run(
        ("debugfs", "-R", f"rdump /srv/packages {work}", image.folder / "disk"),
        check=True,
        capture_output=True,
    )
    shutil.copytree(files, work / "files")
    _mmdebstrap(image.distribution, work, BUILD_MODULE, ("apt", "gcc", "make"), {"WORK": str(work)})
    return work / "fab_bbr.ko"


def _make(distribution: Distribution, work: Path) -> None:
    out = work / "out"
    out.mkdir()
    # The key opens nothing but these disks, whose machines listen on loopback only.
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", out / "key"), check=True)
    environment = {"OUT": str(out), "KEY": str(out / "key.pub"), "WANTED": " ".join(distribution.wanted)}
    _mmdebstrap(distribution, work, FURNISH, (distribution.kernel, *SYSTEM), environment)


def _mmdebstrap(
    distribution: Distribution,
    work: Path,
    script: str,
    packages: tuple[str, ...],
    environment: dict[str, str],
) -> None:
    """Make a root with ``packages``, run ``script`` on it, and throw it away."""
    hook = work / "hook"
    hook.write_text("#!/bin/sh\n" + script, encoding="ascii")
    hook.chmod(0o755)
    keyring = ("--keyring", str(_ubuntu_keyring(work))) if distribution.name.startswith("ubuntu") else ()
    done = subprocess.run(
        (
            "mmdebstrap", "--variant=minbase",
            "--components=main,universe" if keyring else "--components=main",
            "--include", ",".join(packages),
            "--aptopt=APT::Install-Recommends false",
            # apt's own user cannot read keys below a private cache folder.
            "--aptopt=APT::Sandbox::User root",
            *keyring, "--customize-hook", str(hook), distribution.suite, "/dev/null",
        ),
        env={**os.environ, **environment},
        capture_output=True, text=True, check=False, timeout=BUILD_TIMEOUT_S,
    )  # fmt: skip
    if done.returncode != 0:
        message = f"mmdebstrap {distribution.suite} failed:\n{done.stderr[-2000:]}"
        raise RuntimeError(message)


def _ubuntu_keyring(work: Path) -> Path:
    """Ubuntu's archive keys: the machine's own, or out of the package of Debian unstable."""
    if UBUNTU_KEYRING.exists():
        return UBUNTU_KEYRING
    found = archive_here()
    if found is None:
        message = f"no keys to check Ubuntu's packages with: install ubuntu-keyring ({UBUNTU_KEYRING})"
        raise RuntimeError(message)
    archive, site = found
    options = private_apt(work / "apt", archive, site, archive.base).options
    subprocess.run(
        ("apt-get", *options, "--quiet", "download", "ubuntu-keyring"),
        cwd=work,
        check=True,
        capture_output=True,
    )
    package = next(work.glob("ubuntu-keyring_*.deb"))
    subprocess.run(("dpkg-deb", "--extract", package, work / "keyring"), check=True)
    return work / "keyring" / UBUNTU_KEYRING.relative_to("/")
