"""What the command line leaves open is decided so that one can foresee it."""

import json

import pytest
from made_up_testbed import Provider, World
from offers import WHERE

from fabbbr import cli
from fabbbr.arguments import build_parser
from fabbbr.backends.guest_slices import GuestProvider
from fabbbr.backends.providers import PROVIDERS, open_provider
from fabbbr.backends.ssh.config import Way, config_text
from fabbbr.backends.ssh.lab import read
from fabbbr.commands import slice as command
from fabbbr.errors import EnvironmentUnfitError, SpecError, UsageError
from fabbbr.slice.asking import Decision
from fabbbr.slice.state import Wish
from fabbbr.spec.experiment import SliceChoice
from fabbbr.trust import Trust


def decided(definition="two_site", *, parameters=None, backend="fabric", **wish):
    choice = SliceChoice(name=definition, parameters=parameters or {})
    wished = Wish(backend=backend, definition=choice, **wish)
    return Decision("study", wished, Provider(World()), Trust()).asked()


def sites(*args, **kwargs):
    return {one.name: one.site for one in decided(*args, **kwargs).reservation.machines}


@pytest.mark.parametrize(
    ("definition", "given", "found"),
    [
        ("two_site", ("DALL", "SALT"), {"h1": "DALL", "sw": "DALL", "h2": "SALT"}),
        ("two_site", ("receiver=SALT", "sender=DALL"), {"h1": "DALL", "sw": "DALL", "h2": "SALT"}),
        ("two_site", ("TACC",), {"h1": "TACC", "sw": "TACC", "h2": "TACC"}),
        ("rtt_pair", ("DALL", "GPN", "FIU"), {"h1": "DALL", "sw": "DALL", "h2": "GPN", "h3": "FIU"}),
    ],
)
def test_sites_fill_the_places_in_the_order_of_the_definition(definition, given, found):
    assert sites(definition, sites=given) == found


def test_a_definition_without_places_stands_at_one_site():
    assert set(sites("parking_lot", sites=("UTAH",)).values()) == {"UTAH"}


def test_a_place_that_is_given_as_a_parameter_is_not_open_any_more():
    found = sites(parameters={"sender_site": "FIU"}, sites=("SALT",))
    assert (found["h1"], found["h2"]) == ("FIU", "SALT")


def test_the_two_sites_of_a_wished_round_trip():
    asked = decided(rtt_s=0.026)
    assert {one.site for one in asked.reservation.machines} == {"DALL", "SALT"}
    assert "26 ms" in asked.said
    assert "FIU" in sites(rtt_s=0.026, avoid=("DALL",)).values()


def test_sites_by_lot_are_of_the_offer_and_said():
    asked = decided("rtt_pair", sites=("random",), seed=5)
    found = {one.site for one in asked.reservation.machines}
    assert len(found) == 3
    assert found <= set(WHERE)
    assert "--seed 5" in asked.said
    assert len(set(sites("parking_lot", sites=("random",)).values())) == 1


@pytest.mark.parametrize("backend", ["mininet", "guest"])
def test_where_sites_are_labels_none_need_be_given(backend):
    assert set(sites(backend=backend).values()) == {"here"}
    assert sites(backend=backend, sites=("DALL", "SALT"))["h2"] == "SALT"


@pytest.mark.parametrize(
    ("definition", "wish", "said"),
    [
        ("two_site", {"sites": ("A", "B", "C")}, "names 3, and slice two_site has the places sender, rec"),
        ("two_site", {"sites": ("sendr=A", "receiver=B")}, "did you mean 'sender'"),
        ("two_site", {"sites": ("sender=", "receiver=B")}, "'sender='"),
        ("parking_lot", {"sites": ("A", "B")}, "has no places"),
        ("two_site", {}, "no site is known for h1, h2, s1; name sites with --sites"),
        ("rtt_pair", {"rtt_s": 0.1}, "the places near, far, receiver; name sites"),
        ("two_site", {"rtt_s": 0.1, "sites": ("A",)}, "--sites is given too"),
        ("two_site", {"sites": ("A",), "size": "big"}, "--size big"),
    ],
)  # fmt: skip
def test_what_cannot_be_decided_is_refused_with_a_remedy(definition, wish, said):
    with pytest.raises(UsageError, match=said):
        decided(definition, **wish)


# --- the command line


def parsed(*words):
    return command.wish_of(
        build_parser().parse_args(["slice", "create", "study", "--slice", "two_site", *words])
    )


def test_the_command_line_is_a_wish():
    wish = parsed(
        "--sites",
        "DALL,SALT",
        "--nic",
        "NIC_ConnectX_6",
        "--network",
        "L2PTP",
        "--lease",
        "48h",
        "--size",
        "knit6",
    )
    assert (wish.sites, wish.nic, wish.wide, wish.lease_s) == (
        ("DALL", "SALT"),
        "NIC_ConnectX_6",
        "L2PTP",
        172800,
    )
    assert parsed().backend == "fabric"
    assert parsed("--rtt", "40ms", "--avoid", "FIU,GPN").avoid == ("FIU", "GPN")
    assert parsed("--param", "sender_site=X").definition.parameters == {"sender_site": "X"}
    assert parsed("--slice", "./mine.py").definition.name.startswith("/")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--nic", "NIC_Basik"), "did you mean 'NIC_Basic'"),
        (("--lease", "24"), "--lease"),
        (("--lease", "0h"), "longer than nothing"),
        (("--rtt", "0ms"), "--rtt"),
        (("--param", "x"), "give KEY=VALUE"),
    ],
)
def test_what_the_command_line_cannot_mean_is_refused(words, said):
    with pytest.raises(UsageError, match=said):
        parsed(*words)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("create", "x", "--slice", "two_site"), 2, "is no name for a slice"),
        (("show", "../x"), 2, "is no name for a slice"),
        (("show", "study"), 2, "no slice study is remembered"),
        (("teardown", "study", "--yes"), 2, "no slice study is remembered"),
        (("renew", "study", "--until", "tomorrow"), 2, "give a time as 2026"),
        (("create", "study", "--slice", "two_site", "--backend", "ssh"), 2, "--inventory lab.yaml"),
    ],
)
def test_mistakes_have_their_status_and_words(words, status, said, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert cli.main(["slice", *words]) == status
    assert said in capsys.readouterr().err
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_unknown_testbed_is_refused_with_those_that_there_are():
    with pytest.raises(UsageError, match="did you mean 'fabric'"):
        open_provider("fabrik", {})
    assert set(PROVIDERS) == {"fabric", "mininet", "guest", "ssh"}


# --- slices of guests


def test_a_slice_of_guests_is_a_name_that_is_kept(tmp_path, monkeypatch):
    from fabbbr.backends import guest_slices

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    reservation = decided(backend="guest").reservation
    monkeypatch.setattr(guest_slices, "found_image", lambda: None)
    with pytest.raises(EnvironmentUnfitError, match="fabbbr guest build"):
        GuestProvider().submit(reservation)
    assert GuestProvider().find("study") is None
    monkeypatch.setattr(guest_slices, "found_image", dict)
    live = GuestProvider().submit(reservation)
    assert GuestProvider().find("study") == live
    assert live.state == "ok"
    GuestProvider().delete(live)
    assert GuestProvider().refresh(live).state == "gone"


# --- the inventory of hosts

LAB = "machines: {left: {address: 192.0.2.1, nodes: [h1]}, s1: {address: 192.0.2.2, jump: gate}}\n"
GATE = "jumps: {gate: {address: gate.example.org, user: me}}\n"


def lab(tmp_path, text):
    (tmp_path / "lab.yaml").write_text(text)
    return read(tmp_path / "lab.yaml")


def test_a_machine_carries_its_nodes_or_the_one_of_its_name(tmp_path):
    assert lab(tmp_path, LAB + GATE).placement == {"h1": "left", "s1": "s1"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file: "),
        ("{", "not YAML"),
        ("machines: {}", "machines: "),
        (LAB, "s1 is reached by gate, which is no other machine"),
        (LAB.replace("s1:", "h1:") + GATE, "h1 stands on left and on h1"),
        (LAB.replace("address: 192.0.2.1", "adress: 192.0.2.1") + GATE, "machines.left"),
        (LAB.replace("192.0.2.1", '"x\\ny"') + GATE, "machines.left.address"),
        (LAB + GATE.replace("gate: {", "left: {address: a}, gate: {"), "is a jump and a machine"),
    ],
)
def test_a_mistake_in_the_inventory_names_the_file_and_the_place(tmp_path, text, said):
    with pytest.raises(SpecError, match=said) as refused:
        lab(tmp_path, text)
    assert "lab.yaml" in str(refused.value)


def test_nothing_in_a_way_can_become_another_line_of_the_configuration(tmp_path):
    for word in ("a b", "a\nProxyCommand x", '"', "-oProxyCommand=x", "#"):
        with pytest.raises(SpecError):
            lab(tmp_path, f"machines: {{left: {{address: {json.dumps(word)}}}}}")
        key = json.dumps(f"{word}\nProxyCommand x")
        with pytest.raises(SpecError):
            lab(tmp_path, f"machines: {{left: {{address: a, key: {key}}}}}")
    text = config_text(
        [Way(name="a", address="fe80::1%eth0", user="u", key="/a b/50%")], known_hosts=tmp_path / "k h"
    )
    assert '  IdentityFile "/a b/50%%"' in text
    assert "  HostName fe80::1%%eth0" in text
