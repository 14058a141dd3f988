"""Topologies: a sound tree with named ends, or an error that says what is missing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.errors import SpecError
from fabbbr.model import Host, Switch
from fabbbr.plan import definitions
from fabbbr.spec.experiment import SliceChoice
from fabbbr.topology import Link, Pair, Topology
from fabbbr.trust import Trust

TRUNK = Link(name="trunk", a="s1", b="h2", bottleneck=True)
ACCESS = Link(name="access", a="h1", b="s1")


def topology(hosts=("h1", "h2"), switches=("s1",), links=(ACCESS, TRUNK), pairs=(("h1", "h2"),)):
    return Topology(
        hosts=tuple(Host(name=name) for name in hosts),
        switches=tuple(Switch(name=name) for name in switches),
        links=tuple(links),
        pairs=tuple(Pair(sender=a, receiver=b) for a, b in pairs),
    )


def built(name, **parameters):
    return definitions.load(
        SliceChoice(name=name, parameters={key: str(value) for key, value in parameters.items()})
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hosts": ("h1", "h2", "H3")}, "the name 'H3' does not do"),
        ({"hosts": ("h1", "h2", "verylonghost")}, "at most 8"),
        ({"hosts": ("h1", "h2", "h1")}, "'h1' names 2 things"),
        ({"switches": ("s1", "trunk")}, "'trunk' names 2 things"),
        ({"links": (TRUNK, Link(name="x", a="h1", b="s9"))}, "link x ends at 's9'"),
        ({"links": (Link(name="x", a="h1", b="s1", bottleneck=True), TRUNK)}, "a switch must hold its queue"),
        ({"links": (ACCESS, Link(name="x", a="s1", b="h2"))}, "no link is a bottleneck"),
        ({"pairs": ()}, "no pair of hosts"),
        ({"pairs": (("h1", "s1"),)}, "'s1' is no host"),
        ({"pairs": (("h1", "h1"),)}, "paired with itself"),
        ({"hosts": ("h1", "h2", "h3")}, "h3 is not connected to h1; add a link"),
        ({"links": (ACCESS, TRUNK, Link(name="x", a="s1", b="h2"))}, "3 links between 3 nodes make a loop"),
        (
            {"switches": ("s1", "s2"), "links": (ACCESS, TRUNK, Link(name="x", a="h2", b="s2"))},
            "host h2 has 2 links, and hosts do not forward",
        ),
    ],
)
def test_what_is_no_sound_tree_is_refused_with_a_remedy(change, said):
    with pytest.raises(SpecError, match=re.escape(said)):
        topology(**change)


def test_a_path_is_the_same_links_in_both_directions_and_knows_which_run_backwards():
    parking = built("parking_lot", hops=3)
    there, back = parking.path("h1", "y2"), parking.path("y2", "h1")
    assert [link.name for link in there] == ["in", "hop1", "hop2", "out2"]
    assert back == there[::-1]
    assert parking.backwards("h1", "y2") == frozenset()
    assert parking.backwards("y2", "h1") == {"in", "hop1", "hop2", "out2"}
    assert parking.backwards("x1", "x2") == {"in2"}


def test_a_path_to_an_unknown_host_is_refused():
    with pytest.raises(SpecError, match=r"no host 'h9' \(hosts: h1, h2\)"):
        topology().path("h1", "h9")


@given(hosts=st.integers(1, 12))
def test_every_pair_of_a_dumbbell_crosses_its_trunk_once(hosts):
    bell = built("dumbbell", hosts=hosts)
    assert len(bell.pairs) == hosts
    for pair in bell.pairs:
        path = bell.path(pair.sender, pair.receiver)
        assert [link.name for link in path if link.bottleneck] == [bell.trunk]
        assert len(path) == 3


@given(hops=st.integers(1, 12))
def test_the_long_pair_of_a_parking_lot_crosses_every_hop_and_a_cross_pair_one(hops):
    parking = built("parking_lot", hops=hops)
    crossed = [
        [link.name for link in parking.path(pair.sender, pair.receiver) if link.bottleneck]
        for pair in parking.pairs
    ]
    assert crossed == [[f"hop{k}" for k in range(1, hops + 1)], *([f"hop{k}"] for k in range(1, hops + 1))]


def test_the_pairs_of_an_rtt_pair_differ_in_their_access_alone():
    near, far = built("rtt_pair").pairs
    paths = [[link.name for link in built("rtt_pair").path(p.sender, p.receiver)] for p in (near, far)]
    assert paths == [["near", "trunk"], ["far", "trunk"]]


def test_sites_reach_hosts_and_switch():
    wan = built("two_site", sender_site="DALL", receiver_site="SALT")
    assert [node.site for node in (*wan.hosts, *wan.switches)] == ["DALL", "SALT", "DALL"]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"name": "two_sites"}, "no slice 'two_sites'; did you mean 'two_site'?"),
        ({"name": "./nowhere.py"}, "no slice file"),
        ({"name": "./notes.txt"}, "notes.txt: not a Python file; a slice definition ends in .py"),
        ({"name": "dumbbell", "parameters": {"host": "3"}}, "host: unknown parameter; did you mean 'hosts'?"),
        (
            {"name": "dumbbell", "parameters": {"hosts": "five"}},
            "hosts: 'five': input should be a valid integer",
        ),
        ({"name": "dumbbell", "parameters": {"hosts": "0"}}, "hosts: '0': input should be greater than"),
    ],
)
def test_a_slice_that_cannot_be_built_is_refused_with_its_parameter(choice, said, tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(SpecError, match=re.escape(said)):
        definitions.load(SliceChoice(**choice), beside=tmp_path, trust=Trust(anything=True))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def mine(:", "mine.py:1: not Python"),
        ("x = 1", "no function mine"),
        ("\n1 / 0", "mine.py:2: the slice definition failed: ZeroDivisionError"),
        ("def mine():\n    return 3", "mine() returned int"),
        ("def mine():\n    x = 1\n    return {}['a']", "mine.py:3: the slice definition failed: KeyError"),
        ("def mine(n): return n", "mine() returned str"),
        ("def mine(*, n: nonsense = 1):\n    return 1", "the slice definition failed: NameError"),
        (
            (
                "from fabbbr.topology import Topology\ndef mine(): return Topology(hosts=(), "
                "switches=(), links=(), pairs=())"
            ),
            "no link is a bottleneck",
        ),
        (
            "from fabbbr.topology import Topology\ndef mine():\n    return Topology(hosts=())",
            "mine.py:3: the slice definition failed: ValidationError",
        ),
    ],
)
def test_a_users_slice_that_fails_is_an_error_at_its_line(code, said, tmp_path):
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(SpecError, match=re.escape(said)):
        definitions.load(
            SliceChoice(name="./mine.py", parameters={"n": "1"} if "(n)" in code else {}),
            beside=tmp_path,
            trust=Trust(anything=True),
        )


def test_a_users_slice_beside_the_experiment_is_used(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from fabbbr.model import Host, Switch\n"
        "from fabbbr.topology import Link, Pair, Topology\n"
        "def mine(*, receiver: str = 'h2') -> Topology:\n"
        "    return Topology(hosts=(Host(name='h1'), Host(name=receiver)), switches=(Switch(name='s1'),),\n"
        "        links=(Link(name='in', a='h1', b='s1'), Link(name='wan', a='s1', b=receiver, "
        "bottleneck=True)),\n        pairs=(Pair(sender='h1', receiver=receiver),))\n"
    )
    choice = SliceChoice(name="./mine.py", parameters={"receiver": "rx"})
    wan = definitions.load(choice, beside=tmp_path, trust=Trust(anything=True))
    assert (wan.trunk, wan.pairs[0].receiver) == ("wan", "rx")
