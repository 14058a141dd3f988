"""Machines for the tests of the role."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from qemu.distributions import DISTRIBUTIONS, TESTED, Image, image
from qemu.machine import SSH_OPTIONS, Machine, up

from fabbbr.backends.ssh.channel import SshChannel


@pytest.fixture(scope="module", params=TESTED)
def distribution(request) -> Image:
    """The disk of one distribution."""
    return image(DISTRIBUTIONS[request.param])


@pytest.fixture(scope="module")
def machine(distribution) -> Iterator[Machine]:
    """A machine that has never seen the role; the tests of a module go on from each other's state."""
    with up(distribution) as fresh:
        yield fresh


@pytest.fixture(scope="module")
def channel(machine, tmp_path_factory) -> Iterator[SshChannel]:
    """The way that a run takes to it."""
    options = [each.replace("=", " ", 1) for each in SSH_OPTIONS if each != "-o"]
    place = ["HostName 127.0.0.1", f"Port {machine.port}", "User tester", f"IdentityFile {machine.image.key}"]
    config = tmp_path_factory.mktemp("ssh") / "config"
    config.write_text("\n".join(["Host node", *place, *options, ""]), encoding="utf-8")
    there = SshChannel(config, "node", folder="/run/fabbbr")
    yield there
    there.close()
