"""A slice from create to delete, with the real fablib."""

import subprocess
from contextlib import closing
from datetime import timedelta

import pytest
from fabric_double import FAR, NEAR, SOON, answers, gone, settled
from fabric_wishes import all_kinds, machine, reservation, two_sites

from fabbbr.backends.fabric import FabricProvider
from fabbbr.backends.fabric.fablib import utc_now
from fabbbr.backends.provider import ProviderError


def test_from_create_to_delete(provider, name):
    live = settled(provider, provider.submit(two_sites(name, NEAR, FAR)))
    assert live.state == "ok", live.said
    assert {each.name: each.site for each in live.machines} == {"h1": NEAR, "sw": NEAR, "h2": FAR}
    assert {each.name: set(each.interfaces) for each in live.machines} == {
        "h1": {"l1"},
        "sw": {"l1", "l2"},
        "h2": {"l2"},
    }
    for each in live.machines:
        done = answers(provider.channel(each), "sh", "-c", "hostname; id -u; cat /sys/class/net/*/address")
        host, user, *macs = done.stdout.decode().split()
        assert (host, user) == (each.name, "0")
        assert set(each.interfaces.values()) <= set(macs)
        said = subprocess.run(
            (*provider.shell(each), "id", "-un"), capture_output=True, text=True, timeout=30, check=True
        )
        assert said.stdout.strip() == each.user
    until = utc_now() + timedelta(hours=30, minutes=7)
    assert provider.renew(live, until) == until.replace(microsecond=0)
    assert provider.refresh(live).lease_end == until.replace(microsecond=0)
    provider.delete(live)
    assert settled(provider, provider.refresh(live)).state == "gone"
    assert provider.find(name) is None
    provider.delete(live)


def test_every_kind_of_network(provider, name):
    live = settled(provider, provider.submit(all_kinds(name, NEAR, FAR)))
    assert live.state == "ok", live.said
    links = {each.name: set(each.interfaces) for each in live.machines}
    assert links == {
        "h1": {"l1", "l4", "l5"},
        "sw": {"l1", "l2", "l3"},
        "h2": {"l2", "l5"},
        "h3": {"l3", "l4"},
    }
    routed = {each.name: each.gateways for each in live.machines if each.gateways}
    assert set(routed) == {"h1", "h3"}
    assert len({gateway for found in routed.values() for gateway in found.values()}) == 2
    gone(provider, live)


def test_another_process_finds_the_slice_by_its_name(provider, name, tmp_path):
    live = settled(provider, provider.submit(two_sites(name, NEAR, FAR)))
    with closing(FabricProvider(tmp_path, patience=SOON)) as other:
        assert other.find(name) == live
        assert other.find(name[:-1]) is None
        assert other.submit(two_sites(name, FAR, NEAR)) == live
        gone(other, live)
    assert provider.refresh(live).state == "gone"


def test_a_lease_longer_than_fabric_gives_is_told(provider, name):
    wish = reservation(name, (machine("h1", NEAR),), ())
    live = settled(provider, provider.submit(wish))
    end = provider.renew(live, utc_now() + timedelta(days=99))
    assert timedelta(days=14, hours=23) < end - utc_now() <= timedelta(days=15)
    with pytest.raises(ProviderError, match=r"shorter than current.*ask for a later end"):
        provider.renew(live, utc_now() + timedelta(days=1))
    gone(provider, live)


def test_machines_answer_at_once_over_one_connection(provider, name):
    live = settled(provider, provider.submit(reservation(name, (machine("h1", NEAR),), ())))
    (h1,) = live.machines
    assert answers(provider.channel(h1), "hostname").stdout.decode().strip() == "h1"
    assert provider.channel(h1) is provider.channel(h1)
    done = provider.channel(h1).run(("sh", "-c", "printf '\\377'; exit 7"))
    assert (done.returncode, done.stdout) == (7, b"\xff")
    gone(provider, live)


def test_the_offer_has_sites_permissions_and_the_key(provider):
    offer = provider.offer()
    assert {NEAR, FAR} <= set(offer.sites)
    assert offer.sites[NEAR].workers
    assert offer.sites[NEAR].nics["NIC_Basic"].available > 0
    assert offer.project is not None
    assert offer.project.name == "fabbbr sandbox"
    assert all(key.kind == "ssh-rsa" and key.bits >= 3072 for key in offer.keys)
