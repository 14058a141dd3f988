"""What the provider does about FABRIC's answers, and about those that are lost: a FABRIC in memory."""

import shlex
import stat
import sys
import threading
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from fabric_in_memory import LONGEST, START, Fabric, wish

from fabbbr.backends.fabric import provider as rooms
from fabbbr.backends.fabric.answers import (
    GraphSeen,
    LostError,
    RefusedError,
    written,
)
from fabbbr.backends.fabric.cabling import PTP_VLAN, cards, link_of, networks, require_names
from fabbbr.backends.fabric.deadline import within
from fabbbr.backends.fabric.provider import FabricProvider, Patience
from fabbbr.backends.fabric.reach import alias
from fabbbr.backends.provider import Provider, ProviderError
from fabbbr.errors import EnvironmentUnfitError, StoreError
from fabbbr.reserve.records import CableWish, LiveMachine, LiveSlice


@pytest.fixture
def fabric(tmp_path, monkeypatch):
    monkeypatch.setattr(rooms, "require_keys", lambda settings: "ssh-rsa KEY")
    return Fabric(tmp_path)


@pytest.fixture
def provider(fabric, tmp_path):
    made = FabricProvider(tmp_path / "state", wire=fabric, now=lambda: fabric.now, pause=fabric.pause)
    with closing(made):
        yield made


def test_it_is_a_provider(provider):
    checked: Provider = provider
    assert checked.offer().project.tags == ("Slice.Multisite",)


def test_without_the_extra_the_remedy_is_named(tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "fabrictestbed_extensions.fablib.config.config", None)
    monkeypatch.setitem(sys.modules, "fabrictestbed_extensions", None)
    with pytest.raises(EnvironmentUnfitError, match=r"pip install 'fabbbr\[fabric,ansible\]' .*python3-dev"):
        FabricProvider(tmp_path).offer()
    assert capfd.readouterr() == ("", "")


def test_without_a_home_fablib_is_not_even_imported(tmp_path, monkeypatch):
    monkeypatch.delenv("HOME")
    with pytest.raises(EnvironmentUnfitError, match="set HOME"):
        FabricProvider(tmp_path).offer()


# Creating.


@pytest.mark.parametrize(
    ("faults", "orders"),
    [
        ([], 1),
        (["after"], 1),
        (["before"], 2),
        (["before", "after"], 2),
        (["before", "before", "after"], 3),
        ([RefusedError(500, "Slice mine already exists")], 1),
    ],
)
def test_a_slice_is_made_once_whatever_becomes_of_the_answers(provider, fabric, faults, orders):
    if faults and isinstance(faults[0], Exception):
        fabric.create("mine", "", key="", until=START)
        fabric.orders.clear()
        fabric.hidden = 1  # the first look comes too early
    fabric.faults = faults
    fabric.changing = 99
    live = provider.submit(wish())
    assert (live.name, live.state) == ("mine", "configuring")
    assert [each.name for each in fabric.slices.values()] == ["mine"]
    assert len(fabric.orders) == orders


def test_a_slice_that_shows_late_is_waited_for_and_not_ordered_again(provider, fabric):
    fabric.faults = ["after"]
    fabric.hidden = 4
    assert provider.submit(wish()).id == "id-0"
    assert fabric.orders == ["create"]
    assert fabric.now > START


def test_without_any_answer_it_gives_up_and_the_next_run_completes(provider, fabric):
    fabric.faults = ["before"] * 3
    with pytest.raises(ProviderError, match=r"slice mine: asked 3 times without an answer .*run it again"):
        provider.submit(wish())
    assert not fabric.slices
    assert provider.submit(wish()).name == "mine"


def test_what_is_there_already_is_returned_as_it_is(provider, fabric):
    first = provider.submit(wish())
    assert provider.submit(wish(site="MASS")).id == first.id
    assert fabric.orders == ["create"]


def test_a_closing_slice_does_not_hold_its_name(provider, fabric):
    first = provider.submit(wish())
    provider.refresh(first)
    provider.delete(first)
    assert provider.find("mine").state == "closing"
    second = provider.submit(wish())
    assert second.id != first.id
    assert provider.find("mine").id == second.id


def test_a_refusal_names_slice_reason_and_remedy(provider, fabric):
    fabric.faults = [RefusedError(403, "Policy Violation: Your project is lacking Slice.Multisite tag")]
    with pytest.raises(
        ProviderError, match=r"slice mine: FABRIC says: Policy Violation.*; put all machines at one site"
    ):
        provider.submit(wish())
    assert provider.submit(wish()).name == "mine"


def test_the_lease_is_what_fabric_gives(provider, fabric):
    long = wish().model_copy(update={"lease_s": 99 * 86400.0})
    assert provider.submit(long).lease_end == START + LONGEST


@pytest.mark.parametrize("name", ["h", "a b", "", "x" * 256, "ä1"])
def test_names_that_fabric_does_not_take_are_refused_before_it_is_asked(provider, fabric, name):
    with pytest.raises(ProviderError, match=r"machine .*FABRIC takes names of 2 to 255"):
        provider.submit(_named(name))
    assert not fabric.orders


def _named(name):
    machine = wish().machines[0].model_copy(update={"name": name})
    return wish().model_copy(update={"machines": (machine,)})


def test_an_unknown_image_is_refused_with_those_there_are(provider, fabric):
    with pytest.raises(ProviderError, match=r"machine h1: FABRIC has no image 'u25'.*u24"):
        provider.submit(wish(image="u25"))
    assert not fabric.orders


def test_an_unfit_key_is_refused_before_fabric_is_asked(provider, fabric, monkeypatch):
    def refuse(settings):
        raise EnvironmentUnfitError("ed25519")

    monkeypatch.setattr(rooms, "require_keys", refuse)
    with pytest.raises(EnvironmentUnfitError):
        provider.submit(wish())
    assert not fabric.orders


# Finding and looking.


def test_only_the_exact_name_is_found(provider, fabric):
    provider.submit(wish("mine"))
    assert provider.find("min") is None
    assert provider.find("mine").name == "mine"


def test_each_look_is_a_fresh_one(provider, fabric):
    fabric.changing = 2
    live = provider.submit(wish())
    assert live.state == "configuring"
    assert provider.refresh(live).state == "ok"
    fabric.slices[live.id] = fabric.slices[live.id].model_copy(update={"state": "StableError"})
    fabric.graph = GraphSeen(nodes=(fabric.graph.nodes[0].model_copy(update={"state": "Closed"}),))
    failed = provider.refresh(live)
    assert failed.state == "failed"
    assert "h1 is Closed: Insufficient resources : [core]; others have them" in failed.said
    fabric.slices.clear()
    assert provider.refresh(live).state == "gone"


# Renewing.


@pytest.mark.parametrize("faults", [[], ["after"], ["before"], ["before", "after"]])
def test_a_lease_is_moved_to_the_second(provider, fabric, faults):
    live = provider.refresh(provider.submit(wish()))
    fabric.faults = faults
    asked = START + timedelta(hours=30, microseconds=7)
    assert provider.renew(live, asked) == START + timedelta(hours=30)
    assert fabric.slices[live.id].state == "StableOK"


def test_an_end_that_moves_late_is_waited_for(provider, fabric):
    """FABRIC takes the order first and moves the lease when all its parts have agreed."""
    live = provider.refresh(provider.submit(wish()))
    first, looks = fabric.slice, []

    def late(slice_id):
        looks.append(slice_id)
        seen = first(slice_id)
        return seen.model_copy(update={"lease_end": live.lease_end}) if len(looks) < 6 else seen

    fabric.slice = late
    until = START + timedelta(hours=9)
    assert provider.renew(live, until) == until


def test_what_fabric_cuts_is_told(provider, fabric):
    live = provider.refresh(provider.submit(wish()))
    assert provider.renew(live, START + timedelta(days=99)) == START + LONGEST


def test_a_changing_slice_is_renewed_when_it_is_stable(provider, fabric):
    live = provider.submit(wish())
    fabric.slices[live.id] = fabric.slices[live.id].model_copy(update={"state": "Configuring"})
    fabric.changing = 5
    until = START + timedelta(hours=9)
    assert provider.renew(live, until) == until


def test_an_earlier_end_is_refused_with_the_reason(provider, fabric):
    live = provider.refresh(provider.submit(wish()))
    with pytest.raises(ProviderError, match=r"shorter than current.*ask for a later end"):
        provider.renew(live, START + timedelta(minutes=1))
    assert fabric.orders == ["create", "renew"]


def test_a_slice_whose_lease_ended_cannot_be_renewed(provider, fabric):
    live = provider.refresh(provider.submit(wish()))
    fabric.slices[live.id] = fabric.slices[live.id].model_copy(update={"state": "Dead"})
    assert provider.refresh(live).state == "gone"
    with pytest.raises(ProviderError, match="already closed; it is gone: create it again"):
        provider.renew(live, START + timedelta(days=1))
    assert fabric.now == START, "nothing is waited for that cannot come"
    assert provider.submit(wish()).id != live.id


# Deleting.


@pytest.mark.parametrize("faults", [[], ["after"], ["before"], ["before", "after"]])
def test_a_slice_is_given_back(provider, fabric, faults):
    live = provider.refresh(provider.submit(wish()))
    fabric.faults = faults
    provider.delete(live)
    assert fabric.slices[live.id].state == "Closing"
    provider.delete(live)
    fabric.slices.clear()
    provider.delete(live)


def test_a_changing_slice_is_deleted_when_it_is_stable(provider, fabric):
    live = provider.submit(wish())
    fabric.slices[live.id] = fabric.slices[live.id].model_copy(update={"state": "Configuring"})
    fabric.changing = 7
    provider.delete(live)
    assert fabric.slices[live.id].state == "Closing"
    assert fabric.orders.count("delete") == 8


def test_a_slice_that_never_settles_is_given_up_in_time(provider, fabric):
    live = provider.submit(wish())
    fabric.slices[live.id] = fabric.slices[live.id].model_copy(update={"state": "Configuring"})
    fabric.changing = 10**6
    with pytest.raises(ProviderError, match=r"not yet stable.*wait, and do it again"):
        provider.delete(live)
    assert fabric.now - START <= timedelta(seconds=Patience().stable_s + Patience().look_s)


@pytest.mark.parametrize("slice_id", ["", "../slices", "a/b"])
def test_without_an_id_nothing_is_deleted_or_renewed(provider, fabric, slice_id):
    """For fablib's client an empty id means all slices of the user."""
    live = LiveSlice(name="mine", id=slice_id, state="ok")
    for verb in (provider.delete, provider.refresh, lambda live: provider.renew(live, START)):
        with pytest.raises(ProviderError, match="is no id of FABRIC's"):
            verb(live)
    assert not fabric.orders


def test_no_answer_at_all_is_a_line_with_a_remedy(provider, fabric):
    def lost(name):
        raise LostError("the slices: no answer within 45 s")

    fabric.named = lost
    with pytest.raises(
        ProviderError, match=r"slice mine: FABRIC does not answer \(the slices: .*run it again"
    ):
        provider.find("mine")


# The way to machines.

MACHINE = LiveMachine(
    name="h1", site="UTAH", address="2001:db8::7", user="ubuntu", interfaces={"l1": "02:aa:00:00:00:01"}
)


def test_ssh_goes_through_the_bastion_by_a_file_of_ours(provider, tmp_path):
    command = provider.shell(MACHINE)
    assert command[:2] == ("ssh", "-F")
    text = Path(command[2]).read_text()
    for line in (
        f"Host {command[3]}",
        "  HostName 2001:db8::7",
        "  User ubuntu",
        f'  IdentityFile "{tmp_path}/slice_key"',
        "  ProxyJump bastion",
        "Host bastion",
        "  HostName bastion.example.org",
        "  User alice_1",
        f'  IdentityFile "{tmp_path}/bastion_key"',
    ):
        assert f"{line}\n" in text
    assert stat.S_IMODE(Path(command[2]).stat().st_mode) == 0o600


def test_ansible_and_the_shell_use_one_file(provider):
    variables = provider.ansible(MACHINE)
    assert shlex.split(variables["ansible_ssh_common_args"]) == list(provider.shell(MACHINE)[1:3])
    assert variables["ansible_host"] == provider.shell(MACHINE)[3]
    assert variables["ansible_user"] == "ubuntu"


def test_the_same_address_in_another_slice_is_another_machine():
    other = MACHINE.model_copy(update={"interfaces": {"l1": "02:aa:00:00:00:02"}})
    assert alias(MACHINE) != alias(other)
    assert alias(MACHINE) == alias(MACHINE.model_copy(update={"site": "elsewhere"}))


def test_the_files_for_a_machine_end_with_its_slice(provider, fabric, tmp_path):
    path = Path(provider.shell(MACHINE)[2])
    live = provider.refresh(provider.submit(wish()))
    provider.delete(live.model_copy(update={"machines": (MACHINE,)}))
    assert not path.exists()
    assert path.parent.exists()


def test_a_folder_that_cannot_be_made_is_named(provider, tmp_path):
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(StoreError, match=r"/state/ssh cannot be made.*XDG_STATE_HOME"):
        provider.shell(MACHINE)


def test_close_ends_the_library_too(provider, fabric):
    provider.close()
    assert fabric.closed


# Cards and networks.


def cable(link, a, b, kind="L2STS", nic="NIC_Basic"):
    return CableWish(link=link, a=a, b=b, a_machine=a, b_machine=b, kind=kind, nic=nic)


def cabled(*cables, sites=("UTAH", "UTAH", "MASS")):
    base = wish().machines[0]
    names = ("h1", "sw", "h2")
    machines = tuple(
        base.model_copy(update={"name": name, "site": site}) for name, site in zip(names, sites, strict=True)
    )
    return wish().model_copy(update={"machines": machines, "cables": cables})


def test_whole_cards_are_filled_and_shares_are_not():
    nic = "NIC_ConnectX_6"
    made = cards(
        cabled(
            cable("l1", "h1", "sw"),
            cable("l2", "sw", "h2", nic=nic),
            cable("l3", "sw", "h2", nic=nic),
            cable("l4", "sw", "h1", nic=nic),
        )
    )
    assert [(card.machine, card.name, card.model, card.links) for card in made] == [
        ("h1", "nic1", "NIC_Basic", ("l1",)),
        ("sw", "nic1", "NIC_Basic", ("l1",)),
        ("sw", "nic2", nic, ("l2", "l3")),
        ("h2", "nic1", nic, ("l2", "l3")),
        ("sw", "nic3", nic, ("l4",)),
        ("h1", "nic2", nic, ("l4",)),
    ]


def test_a_routed_link_has_a_network_at_each_site():
    (one,) = networks(cabled(cable("l1", "h1", "sw", "FABNetv4")))
    assert (one.name, one.ends) == ("link-l1", (("h1", "l1"), ("sw", "l1")))
    near, far = networks(cabled(cable("l1", "sw", "h2", "FABNetv4")))
    assert (near.name, near.ends) == ("link-l1-a", (("sw", "l1"),))
    assert (far.name, far.ends) == ("link-l1-b", (("h2", "l1"),))
    assert {link_of(net.name) for net in (one, near, far)} == {"l1"}


def test_names_are_fit_for_the_model_of_fabric():
    require_names(cabled(cable("l1", "h1", "sw")))
    assert 1 <= PTP_VLAN <= 4094


# Deadlines.


def test_a_call_that_does_not_come_back_is_left():
    gate = threading.Event()
    try:
        with pytest.raises(LostError, match=r"a slow one: no answer within 0\.05 s"):
            within(0.05, "a slow one", gate.wait)
    finally:
        gate.set()


def test_a_call_gives_its_result_or_its_error():
    assert within(9, "quick", lambda: 5) == 5
    with pytest.raises(KeyError):
        within(9, "quick", lambda: {}["x"])

    def late():
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        within(9, "quick", late)


def test_times_are_written_in_utc_to_the_second():
    east = timezone(timedelta(hours=2))
    assert written(datetime(2026, 1, 1, 1, 0, 0, 5, tzinfo=east)) == "2025-12-31 23:00:00 +0000"
