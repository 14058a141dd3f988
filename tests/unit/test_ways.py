"""Which way data goes through a tree of links."""

from hypothesis import given
from hypothesis import strategies as st

from fabbbr.model import CellLink
from fabbbr.ways import Ways, crossed


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
