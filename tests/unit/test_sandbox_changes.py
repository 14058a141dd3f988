"""What leads from one state of a slice to the next."""

from hypothesis import given
from hypothesis import strategies as st

from fabbbr.sandbox.control.asked import (
    Asked,
    AskedComponent,
    AskedNetwork,
    AskedNode,
    AskedPlug,
    AskedPort,
    changes,
)

SITES = ("TACC", "UTAH")


def node(name, site="TACC", cards=("nic",)):
    components = tuple(
        AskedComponent(
            id=f"{name}-{card}", name=card, kind="SharedNIC-ConnectX-6",
            ports=(AskedPort(id=f"{name}-{card}-p1", name="p1"),),
        )
        for card in cards
    )  # fmt: skip
    return AskedNode(
        id=name, name=name, site=site, host=None, image="default_rocky_9", cores=2, ram_gb=8, disk_gb=10,
        components=components,
    )  # fmt: skip


def network(name):
    return AskedNetwork(id=name, name=name, kind="L2Bridge", site=None, rate_gbps=None)


def plug(port, to, site="TACC", vlan=None):
    return AskedPlug(port=port, service_port=f"{to}-{port}", network=to, site=site, vlan=vlan)


ONE = Asked(nodes=(node("a"), node("b")), networks=(network("net"),), plugs=(plug("a-nic-p1", "net"),))


def test_nothing_changes_from_a_slice_to_itself():
    assert not changes(ONE, ONE)


def test_new_slice_is_all_new_and_an_empty_one_takes_all_away():
    made = changes(Asked(), ONE)
    assert (made.new_nodes, made.new_networks, made.new_plugs) == (ONE.nodes, ONE.networks, ONE.plugs)
    assert made.gone_nodes == made.gone_networks == made.gone_plugs == made.new_components == ()
    gone = changes(ONE, Asked())
    assert (gone.gone_nodes, gone.gone_networks, gone.gone_plugs) == (ONE.nodes, ONE.networks, ONE.plugs)
    assert gone.abandoned == {"a", "b", "net"}


def test_card_of_a_node_that_stays_comes_and_goes_by_itself():
    more = ONE.model_copy(update={"nodes": (node("a", cards=("nic", "second")), node("b"))})
    added = changes(ONE, more)
    assert [(at.id, card.name) for at, card in added.new_components] == [("a", "second")]
    assert added.new_nodes == added.gone_components == ()
    assert [(at.id, card.name) for at, card in changes(more, ONE).gone_components] == [("a", "second")]


def test_port_that_moves_to_a_tag_is_unplugged_and_plugged():
    tagged = ONE.model_copy(update={"plugs": (plug("a-nic-p1", "net", vlan=100),)})
    moved = changes(ONE, tagged)
    assert [p.vlan for p in moved.gone_plugs] == [None]
    assert [p.vlan for p in moved.new_plugs] == [100]
    assert moved.new_networks == ()


def test_network_that_reaches_another_site_is_made_anew_with_all_its_plugs():
    wider = Asked(
        nodes=(*ONE.nodes, node("c", "UTAH")), networks=ONE.networks,
        plugs=(*ONE.plugs, plug("c-nic-p1", "net", "UTAH")),
    )  # fmt: skip
    made = changes(ONE, wider)
    assert made.gone_networks == made.new_networks == ONE.networks
    assert made.gone_plugs == ONE.plugs
    assert set(made.new_plugs) == set(wider.plugs)
    assert made.abandoned == frozenset()


@st.composite
def slices(draw):
    names = draw(st.sets(st.sampled_from("abcd")))
    nodes = tuple(
        node(name, draw(st.sampled_from(SITES)), tuple(draw(st.sets(st.sampled_from(("nic", "second"))))))
        for name in sorted(names)
    )
    networks = tuple(network(name) for name in sorted(draw(st.sets(st.sampled_from(("x", "y"))))))
    ports = [(port.id, at.site) for at in nodes for card in at.components for port in card.ports]
    plugs = tuple(
        plug(port, draw(st.sampled_from(networks)).id, site)
        for port, site in ports
        if networks and draw(st.booleans())
    )
    return Asked(nodes=nodes, networks=networks, plugs=plugs)


@given(slices(), slices())
def test_the_way_back_takes_away_what_the_way_there_brought(old, new):
    there, back = changes(old, new), changes(new, old)
    assert set(there.new_nodes) == set(back.gone_nodes)
    assert {n.id for n in there.new_networks} == {n.id for n in back.gone_networks}
    assert {(p.port, p.network) for p in there.new_plugs} == {(p.port, p.network) for p in back.gone_plugs}
    kept = {p for p in old.plugs if p not in there.gone_plugs}
    assert {(p.port, p.network) for p in (*kept, *there.new_plugs)} == {
        (p.port, p.network) for p in new.plugs
    }
