"""The provider with the real fablib beside a double of FABRIC: ``make test-fabric``.

Whatever goes wrong, the message says what to do, and the same words said again complete.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import fabric_double as double
import pytest
from fabric_wishes import all_kinds, cable, machine, reservation, two_sites

from fabbbr.backends.channel import ChannelError
from fabbbr.backends.fabric import FabricProvider
from fabbbr.backends.fabric import fablib as library
from fabbbr.backends.fabric.answers import written
from fabbbr.backends.fabric.fablib import utc_now
from fabbbr.backends.fabric.provider import Patience
from fabbbr.backends.provider import ProviderError
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.reserve.records import Size

pytestmark = [
    pytest.mark.fabric,
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(double.DOOR is None, reason="runs beside the double: make test-fabric"),
]
NEAR, FAR = "DALL", "SALT"
SOON = Patience(appear_s=3.0, stable_s=60.0, settle_s=20.0, look_s=0.5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("state")


@pytest.fixture
def provider(folder):
    double.heal()
    with closing(FabricProvider(folder, patience=SOON)) as provider:
        yield provider
    double.heal()


@pytest.fixture
def name(request):
    """Of a slice: the test's own, so that nothing of another test is found."""
    return request.node.name.replace("[", "-").replace("]", "").replace("_", "-")[5:60]


def settled(provider, live, limit_s=60.0):
    end = time.monotonic() + limit_s
    while live.state in ("configuring", "closing") and time.monotonic() < end:
        time.sleep(0.3)
        live = provider.refresh(live)
    return live


def gone(provider, live):
    provider.delete(live)
    assert settled(provider, provider.refresh(live)).state == "gone"


def answers(channel, *argv, limit_s=60.0):
    """The first answer of a machine whose sshd may still be starting."""
    end = time.monotonic() + limit_s
    while True:
        try:
            return channel.run(argv, timeout_s=20)
        except ChannelError:  # noqa: PERF203
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def creates():
    return sum(
        each["method"] == "POST" and each["path"].endswith("/slices/creates") for each in double.requests()
    )


def completes(provider, wish):
    """The same words again, without the failure."""
    double.heal()
    if there := provider.find(wish.name):
        gone(provider, there)
    live = settled(provider, provider.submit(wish))
    assert live.state == "ok", live.said
    gone(provider, live)


def configured(folder, **changes):
    """A provider whose settings differ from those of fablib's files."""
    made = FabricProvider(folder, patience=SOON)
    made._wire._settings = made._wire.settings().model_copy(update=changes)
    return made


def near_its_end(path):
    """Let the next use of a token renew it."""
    held = json.loads(path.read_text())
    path.write_text(json.dumps({**held, "expires_at": written(utc_now() + timedelta(minutes=1))}))


# The walk.


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


# What goes wrong.


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


def test_missing_permission(provider, name):
    project = provider.offer().project
    if "Slice.Multisite" in project.tags:
        pytest.skip("needs a fresh project: --tag none")
    with pytest.raises(
        ProviderError, match=r"Policy Violation.*Slice.Multisite.*put all machines at one site"
    ):
        provider.submit(two_sites(name, NEAR, FAR))
    big = reservation(name, (machine("h1", NEAR, size=Size(cores=4, ram_gb=8, disk_gb=10)),), ())
    with pytest.raises(ProviderError, match=r"VM.NoLimitCPU.*take a smaller size, of at most 2 cores"):
        provider.submit(big)
    cards = reservation(
        name,
        (machine("h1", NEAR), machine("h2", NEAR)),
        (cable("l1", "h1", "h2", "L2Bridge", "NIC_ConnectX_6"),),
    )
    with pytest.raises(ProviderError, match=r"Component.SmartNIC_ConnectX_6.*take NIC_Basic"):
        provider.submit(cards)
    assert provider.find(name) is None
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


# Settings.


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("FABRIC_PROJECT_ID", None, "run: fabric-cli configure setup"),
        ("FABRIC_BASTION_USERNAME", None, "run: fabric-cli configure setup"),
        ("FABRIC_BASTION_USERNAME", "", "FABRIC_BASTION_USERNAME is empty"),
        (
            "FABRIC_ORCHESTRATOR_HOST",
            "https://orchestrator.fabric-testbed.net",
            "give the bare name of the host",
        ),
        ("FABRIC_ORCHESTRATOR_HOST", "nowhere.fabric-testbed.net", "nowhere.fabric-testbed.net"),
        ("FABRIC_TOKEN_LOCATION", "/nowhere/tokens.json", "/nowhere/tokens.json"),
    ],
)
def test_settings_that_will_not_do(tmp_path, setting, value, said):
    """In a process and a home of its own, as users have: fablib looks for HOME when it is imported."""
    rc = tmp_path / "work/fabric_config/fabric_rc"
    rc.parent.mkdir(parents=True)
    mine = Path(os.environ["HOME"], "work/fabric_config/fabric_rc").read_text().splitlines()
    lines = [each for each in mine if f" {setting}=" not in each]
    if value is not None:
        lines.append(f"export {setting}={value}")
    rc.write_text("\n".join([*lines, ""]))
    environment = {key: text for key, text in os.environ.items() if key != setting}
    program = (
        "from fabbbr.backends.fabric import FabricProvider\n"
        "from fabbbr.errors import FabbbrError\n"
        "try: FabricProvider().offer()\n"
        "except FabbbrError as error: print(error.exit_status, error)\n"
    )
    done = subprocess.run(
        (sys.executable, "-c", program),
        env={**environment, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    (words,) = done.stdout.splitlines()
    assert words[:2] in ("5 ", "6 ")
    assert said in words
