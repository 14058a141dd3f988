"""Which way data goes through a tree of links."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.model import CellLink
from fabbbr.plan import definitions, expand
from fabbbr.spec import read
from fabbbr.ways import Ways, crossed, limits_itself


def test_a_flow_crosses_the_links_between_its_ends():
    tree = [
        CellLink(name=name, a=a, b=b)
        for name, a, b in (
            ("in", "h1", "s1"),
            ("trunk", "s1", "s2"),
            ("out", "s2", "r1"),
            ("side", "h2", "s2"),
            ("apart", "x1", "x2"),
        )
    ]
    assert crossed(tree, "h1", "r1") == {"in": True, "trunk": True, "out": True}
    assert crossed(tree, "h2", "h1") == {"side": True, "trunk": False, "in": False}
    assert crossed(tree, "h1", "h1") == {}
    for elsewhere in ("x1", "nowhere"):
        assert crossed(tree, "h1", elsewhere) == crossed(tree, elsewhere, "h1") == {}


@st.composite
def trees(draw):
    """Each node but the first hangs on one before it; links are in any order and have either end first."""
    links = []
    for node in range(1, draw(st.integers(2, 12))):
        ends = [f"n{draw(st.integers(0, node - 1))}", f"n{node}"]
        a, b = draw(st.permutations(ends))
        links.append(CellLink(name=f"l{node}", a=a, b=b))
    return draw(st.permutations(links))


@given(links=trees(), data=st.data())
def test_a_way_is_walked_link_by_link_and_back_the_same_way(links, data):
    nodes = sorted({node for link in links for node in (link.a, link.b)})
    here, receiver = data.draw(st.sampled_from(nodes)), data.draw(st.sampled_from(nodes))
    ways, ends = Ways(links), {link.name: (link.a, link.b) for link in links}
    way = ways.between(here, receiver)
    back = {name: not forward for name, forward in reversed(way.items())}
    assert list(ways.between(receiver, here).items()) == list(back.items())
    for name, forward in way.items():
        start, end = ends[name] if forward else reversed(ends[name])
        assert start == here
        here = end
    assert here == receiver


@pytest.mark.parametrize(
    ("flow", "more", "limited"),
    [
        ("cca: cubic", "", False),
        ("cca: cubic, pacing: 15 Mbit/s", "", True),
        ("cca: cubic, pacing: 20 Mbit/s", "", False),
        ("cca: cubic, pacing: 25 Mbit/s", "", False),
        ("cca: cubic, pacing: 5 Mbit/s, streams: 4", "", False),
        ("cca: cubic, pacing: 5 Mbit/s, streams: 3", "", True),
        ("cca: cubic, pacing: 25 Mbit/s", "steps: [{at: 10 s, rate: 50 Mbit/s}]", True),
        ("cca: cubic, pacing: 25 Mbit/s", "steps: [{at: 10 s, rate: 10 Mbit/s}]", False),
        ("udp: 50 Mbit/s", "", True),
        ("cca: cubic, video: {bitrate: 4 Mbit/s}", "", True),
    ],
)
def test_what_is_paced_above_what_the_link_ever_carries_does_not_limit_itself(flow, more, limited):
    text = (
        "id: x\ntitle: X\nslice: two_site\npath: {rate: 20 Mbit/s, rtt: 20 ms}\n"
        f"flows: [{{{flow}, duration: 20 s}}]\nrepeat: 1\n{more}\n"
    )
    (cell,) = expand.cells(read.parse(text, source="f.yaml"), definitions.load, seed=1)
    assert limits_itself(cell, cell.flows[0]) is limited
