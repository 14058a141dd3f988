"""Whatever goes wrong, the message says what to do, and the same words said again complete."""

import json
import subprocess
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import fabric_double as double
import pytest
from fabric_double import (
    FAR,
    NEAR,
    completes,
    configured,
    creates,
    gone,
    near_its_end,
    settled,
)
from fabric_wishes import machine, reservation, two_sites

from fabbbr.backends.channel import ChannelError
from fabbbr.backends.fabric import fablib as library
from fabbbr.backends.fabric.answers import written
from fabbbr.backends.fabric.fablib import utc_now
from fabbbr.backends.provider import ProviderError
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.reserve.records import Size


def test_unknown_site(provider, name):
    live = settled(provider, provider.submit(two_sites(name, NEAR, "MOON")))
    assert live.state == "failed"
    assert "h2 is Closed" in live.said
    assert "choose another site" in live.said or "choose one of FABRIC's sites" in live.said
    completes(provider, two_sites(name, NEAR, FAR))


def test_insufficient_resources(provider, name):
    double.fail("insufficient-resources:node=h2")
    wish = two_sites(name, NEAR, FAR)
    live = settled(provider, provider.submit(wish))
    assert live.state == "failed"
    assert "h2 is Closed: Insufficient resources" in live.said
    assert "choose another site or a smaller size, delete the slice and create it again" in live.said
    completes(provider, wish)


def test_more_than_a_worker_has(provider, name):
    wish = reservation(name, (machine("h1", NEAR, size=Size(cores=4096, ram_gb=8, disk_gb=10)),), ())
    live = settled(provider, provider.submit(wish))
    assert live.state == "failed"
    assert "h1 is Closed: Insufficient resources" in live.said
    completes(provider, reservation(name, (machine("h1", NEAR),), ()))


def test_expired_token_file(provider, name, tmp_path, folder):
    held = json.loads(Path(provider._wire.settings().token_file).read_text())
    old = tmp_path / "tokens.json"
    ended = written(utc_now() - timedelta(hours=1))
    old.write_text(json.dumps({**held, "refresh_token": None, "expires_at": ended}))
    wish = reservation(name, (machine("h1", NEAR),), ())
    with closing(configured(folder, token_file=str(old))) as other:
        with pytest.raises(
            EnvironmentUnfitError, match=r"tokens\.json expired at .*fabric-cli configure setup"
        ):
            other.submit(wish)
        old.write_text(json.dumps({**held, "refresh_token": None}))
        completes(other, wish)


def test_token_revoked_meanwhile(provider, name):
    live = settled(provider, provider.submit(reservation(name, (machine("h1", NEAR),), ())))
    double.fail("token-expired:nth=1")
    try:
        with pytest.raises(EnvironmentUnfitError, match="is not accepted by FABRIC; run: fabric-cli"):
            provider.refresh(live)
    finally:
        near_its_end(Path(provider._wire.settings().token_file))
    gone(provider, live)


def test_ed25519_key(provider, name, tmp_path, folder):
    key = tmp_path / "ed"
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key), check=True)
    before = creates()
    with (
        closing(configured(folder, slice_key=str(key), slice_public_key=f"{key}.pub")) as other,
        pytest.raises(EnvironmentUnfitError, match="a key of the kind 'ssh-ed25519'; FABRIC takes RSA"),
    ):
        other.submit(reservation(name, (machine("h1", NEAR),), ()))
    assert creates() == before
    completes(provider, reservation(name, (machine("h1", NEAR),), ()))


@pytest.mark.parametrize(("when", "orders"), [("before", 2), ("after", 1)])
def test_gateway_error_at_create(provider, name, when, orders):
    before = creates()
    double.fail(f"http:status=502,when={when},method=POST,path=/slices/creates")
    live = provider.submit(two_sites(name, NEAR, FAR))
    assert not double.waiting()
    assert creates() - before == orders
    live = settled(provider, live)
    assert live.state == "ok", live.said
    gone(provider, live)


@pytest.mark.parametrize("when", ["before", "after"])
def test_gateway_errors_at_renew_and_delete(provider, name, when):
    live = settled(provider, provider.submit(reservation(name, (machine("h1", NEAR),), ())))
    double.fail(f"http:status=504,when={when},method=POST,path=/slices/renew")
    until = (utc_now() + timedelta(hours=40)).replace(microsecond=0)
    assert provider.renew(live, until) == until
    double.fail(f"http:status=502,when={when},method=DELETE,path=/slices/delete")
    gone(provider, live)
    assert not double.waiting()


def test_slow_answers_end_by_our_deadline(provider, name, monkeypatch):
    provider.offer()
    monkeypatch.setattr(library, "WRITE_S", 1.0)
    double.fail("slow:seconds=6,method=POST,path=/slices/creates")
    start = time.monotonic()
    live = provider.submit(reservation(name, (machine("h1", NEAR),), ()))
    assert time.monotonic() - start < 30
    live = settled(provider, live)
    assert live.state == "ok", live.said
    assert len([each for each in [provider.find(name)] if each]) == 1
    gone(provider, live)


def test_lease_that_ends(provider, name):
    double.fail(f"lease-ends:slice={name},seconds=1")
    wish = reservation(name, (machine("h1", NEAR),), ())
    live = settled(provider, provider.submit(wish))
    end = time.monotonic() + 30
    while live.state != "gone" and time.monotonic() < end:
        time.sleep(0.3)
        live = provider.refresh(live)
    assert live.state == "gone"
    with pytest.raises(ProviderError, match="it is gone: create it again"):
        provider.renew(live, utc_now() + timedelta(days=1))
    provider.delete(live)
    assert provider.find(name) is None
    completes(provider, wish)


def test_machine_without_an_address(provider, name):
    double.fail("no-management-ip:node=h2")
    wish = two_sites(name, NEAR, FAR)
    live = settled(provider, provider.submit(wish), limit_s=12)
    assert (live.state, live.said) == ("configuring", "StableOK, but h2 has no management address yet")
    assert {each.name for each in live.machines} == {"h1", "sw"}
    completes(provider, wish)


def test_delete_while_configuring(provider, name):
    live = provider.submit(two_sites(name, NEAR, FAR))
    assert live.state == "configuring"
    provider.delete(live)
    assert settled(provider, provider.refresh(live)).state == "gone"
    completes(provider, two_sites(name, NEAR, FAR))


def test_machine_that_never_opens_ssh(provider, name):
    double.fail("ssh-never:node=h1")
    live = settled(provider, provider.submit(reservation(name, (machine("h1", NEAR),), ())))
    assert live.state == "ok"
    (h1,) = live.machines
    start = time.monotonic()
    with pytest.raises(ChannelError, match="h1"):
        provider.channel(h1).run(("true",), timeout_s=20)
    assert time.monotonic() - start < 60
    gone(provider, live)
