"""A slice from create to delete, with the time of each step: ``python drive.py`` beside a double of FABRIC."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

from fabbbr.backends.fabric.provider import FabricProvider
from fabbbr.reserve.records import CableWish, LiveSlice, MachineWish, Reservation, Size
from fabbbr.spec.experiment import SliceChoice


def wished(name: str, near: str, far: str) -> Reservation:
    """Two hosts at two sites, with a switch beside the first."""
    size = Size(cores=2, ram_gb=8, disk_gb=10)

    def machine(node: str, site: str) -> MachineWish:
        return MachineWish(name=node, site=site, nodes=(node,), size=size, image="default_ubuntu_22")

    return Reservation(
        name=name,
        definition=SliceChoice(name="two_site"),
        machines=(machine("h1", near), machine("sw", near), machine("h2", far)),
        cables=(
            CableWish(
                link="l1", a="h1", b="sw", a_machine="h1", b_machine="sw", kind="L2Bridge", nic="NIC_Basic"
            ),
            CableWish(
                link="l2", a="sw", b="h2", a_machine="sw", b_machine="h2", kind="L2STS", nic="NIC_Basic"
            ),
        ),
        lease_s=86400,
    )


def settled(provider: FabricProvider, live: LiveSlice, limit_s: float = 120.0) -> LiveSlice:
    """The slice once it is ok, failed or gone."""
    end = time.monotonic() + limit_s
    while live.state == "configuring" and time.monotonic() < end:
        time.sleep(0.5)
        live = provider.refresh(live)
    return live


@contextmanager
def _timed(what: str) -> Iterator[None]:
    start = time.monotonic()
    yield
    print(f"{time.monotonic() - start:6.2f} s  {what}", flush=True)


def main() -> int:
    """Walk."""
    provider = FabricProvider()
    with _timed("offer"):
        offer = provider.offer()
    print(list(offer.sites), offer.project)
    near, far = [name for name, site in offer.sites.items() if site.state == "active"][:2]
    with _timed("submit"):
        live = provider.submit(wished("drive", near, far))
    with _timed("submit again"):
        assert provider.submit(wished("drive", near, far)).id == live.id
    with _timed("wait for ok"):
        live = settled(provider, live)
    print(live.model_dump_json(indent=1))
    assert live.state == "ok", live.said
    for machine in live.machines:
        channel = provider.channel(machine)
        with _timed(f"hostname of {machine.name}"):
            end = time.monotonic() + 60
            while True:
                try:
                    done = channel.run(("sh", "-c", "hostname; id -un; cat /sys/class/net/*/address"))
                    break
                except Exception as error:
                    if time.monotonic() > end:
                        raise
                    print("   ", str(error)[:200])
                    time.sleep(1)
        print(done.stdout.decode().split())
        assert set(machine.interfaces.values()) <= set(done.stdout.decode().split())
        with _timed(f"again {machine.name}"):
            channel.run(("true",))
        with _timed(f"shell {machine.name}"):
            subprocess.run((*provider.shell(machine), "id", "-un"), check=True, timeout=30)
        print(provider.ansible(machine))
    with _timed("renew"):
        until = datetime.now(timezone.utc) + timedelta(hours=30, minutes=7)
        print(until, provider.renew(live, until))
    with _timed("delete"):
        provider.delete(live)
    with _timed("wait for gone"):
        while provider.refresh(live).state != "gone":
            time.sleep(0.5)
    assert provider.find("drive") is None
    provider.delete(live)
    with _timed("close"):
        provider.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
