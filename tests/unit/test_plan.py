"""Plans: what every link and flow of a cell gets, and that ids, seeds and order are stable."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import GUEST

from fabbbr import limits
from fabbbr.errors import PlanError, SpecError
from fabbbr.model import LinkTrace
from fabbbr.physics import burst_bytes, end_of
from fabbbr.plan import definitions, expand, link_traces
from fabbbr.plan.beside import Beside
from fabbbr.plan.estimate import estimate, packets_per_s
from fabbbr.spec import read
from fabbbr.units import Duration, Rate

BASE = """\
id: small
title: A small experiment
slice: {slice}
path: {{rate: 10 Mbit/s, rtt: {rtt}{path}}}
flows: [{flows}]
repeat: 2
{more}
"""
ONE_FLOW = "{cca: cubic, duration: 60 s}"


def planned(
    slice_="two_site", rtt="40 ms", path="", flows=ONE_FLOW, more="", *, seed=1, profile="default", **how
):
    text = BASE.format(slice=slice_, rtt=rtt, path=f", {path}" if path else "", flows=flows, more=more)
    return expand.cells(
        read.parse(text, source="f.yaml", profile=profile), definitions.load, seed=seed, **how
    )


def cell(*args, **kwargs):
    return planned(*args, **kwargs)[0]


def link(cell_, name):
    return next(one for one in cell_.links if one.name == name)


MS = 1_000_000
VARY = "vary: {{cca: [{ccas}], loss: [{losses}]}}"


def varied(ccas="cubic, bbr1", losses="0.1 %, 1 %", repeat=2, seed=1):
    return planned(
        path="loss: $loss",
        flows="{cca: $cca, duration: 60 s}",
        more=VARY.format(ccas=ccas, losses=losses) + f"\nfull: {{repeat: {repeat}}}",
        profile="full",
        seed=seed,
    )


def test_a_scalar_rtt_lies_on_the_trunk_half_of_it_each_way():
    one = cell()
    assert link(one, "trunk").delay == Duration(20 * MS)
    assert link(one, "access").delay is None
    assert one.flows[0].rtt == Duration(40 * MS)


def test_rtts_by_sender_lie_on_their_access_links_and_the_buffer_counts_the_longest():
    one = cell("rtt_pair", "{h1: 60 ms, h2: 100 ms}", flows=f"{ONE_FLOW}, {ONE_FLOW}")
    assert [link(one, name).delay for name in ("near", "far", "trunk")] == [
        Duration(30 * MS),
        Duration(50 * MS),
        None,
    ]
    assert [(flow.sender, flow.rtt.ns // MS) for flow in one.flows] == [("h1", 60), ("h2", 100)]
    assert one.bottleneck.bdp_bytes == one.bottleneck.buffer_bytes == 125_000


def test_every_hop_of_a_parking_lot_has_rate_rtt_and_a_buffer_for_the_longest_path_through_it():
    flows = "{cca: cubic, count: 3, duration: 60 s}"
    one = cell("{name: parking_lot, hops: 2}", flows=flows)
    assert [flow.rtt.ns // MS for flow in one.flows] == [80, 40, 40]
    for name in ("hop1", "hop2"):
        assert (link(one, name).bottleneck.rate, link(one, name).delay) == (
            Rate(10_000_000),
            Duration(20 * MS),
        )
        assert link(one, name).bottleneck.buffer_bytes == 100_000


@pytest.mark.parametrize(
    ("asked", "held"), [("1 BDP", 50_000), ("0.5 BDP", 25_000), ("100 kB", 100_000), ("10 packets", 15_140)]
)
def test_a_buffer_is_resolved_to_bytes_and_keeps_what_was_asked(asked, held):
    one = cell(path=f"buffer: {asked}").bottleneck
    assert (one.buffer_bytes, one.buffer_asked, one.bdp_bytes) == (held, asked, 50_000)


def test_loss_lies_behind_the_queue_or_before_it_as_asked():
    after, before = cell(path="loss: 1 %"), cell(path="loss: {rate: 1 %, position: before_bottleneck}")
    assert link(after, "trunk").loss.rate.value == 0.01
    assert link(after, "access").loss is None
    assert link(before, "access").loss.rate.value == 0.01
    assert link(before, "trunk").loss is None


def test_no_loss_is_none_and_not_zero():
    assert cell(path="loss: 0 %").trunk.loss is None


@pytest.mark.parametrize(
    ("asked", "held"),
    [("1 ms", (1 * MS, 1 * MS)), ("{least: 0.2 ms, most: 3 ms}", (MS // 5, 3 * MS)), ("0 ms", None)],
)
def test_acknowledgements_are_aggregated_on_the_bottlenecks(asked, held):
    one = cell("{name: parking_lot, hops: 2}", path=f"ack_aggregation: {asked}")
    for each in one.links:
        aggregation = each.ack_aggregation
        told = None if aggregation is None else (aggregation.least.ns, aggregation.most.ns)
        assert told == (held if each.bottleneck is not None else None)


def test_a_link_may_differ_from_the_path():
    more = "links: {access: {rate: 20 Mbit/s, rtt: 10 ms, buffer: 30 kB}, trunk: {aqm: fq_codel}}"
    with pytest.raises(PlanError, match="its sending end h1 is a host; only a switch shapes"):
        cell(more=more)
    one = cell("dumbbell", more=more.replace("access", "out1"))
    assert link(one, "out1").bottleneck.rate == Rate(20_000_000)
    near = link(one, "out1").bottleneck
    assert (near.buffer_bytes, near.aqm) == (30_000, "taildrop")
    assert (link(one, "trunk").bottleneck.aqm, one.flows[0].rtt.ns // MS) == ("fq_codel", 50)


def test_a_delay_can_be_moved_from_the_bottleneck_to_the_sender():
    one = cell(more="links: {access: {rtt: 30 ms}, trunk: {rtt: 0 s}}")
    assert [each.delay.ns if each.delay else 0 for each in one.links] == [15 * MS, 0]
    assert one.flows[0].rtt.ns == 30 * MS
    assert one.bottleneck.bdp_bytes == 10_000_000 * 0.030 / 8


def test_a_threshold_for_marks_is_that_of_codels_alone_and_zero_is_none():
    marks = "aqm: fq_codel, ecn: true, ce_threshold"
    one = cell(
        "dumbbell",
        path=f"{marks}: 242 us",
        more="links: {out1: {rate: 9 Mbit/s, aqm: cake}, out2: {rate: 9 Mbit/s, aqm: codel}}",
    )
    assert {link(one, name).bottleneck.ce_threshold for name in ("trunk", "out2")} == {Duration(242_000)}
    assert link(one, "out1").bottleneck.ce_threshold is None
    assert cell(path=f"{marks}: 0 s").bottleneck.ce_threshold is None


def test_targets_and_intervals_are_of_the_aqms_that_have_them_both_ways():
    one = cell(
        "dumbbell",
        path="aqm: pie, aqm_target: 20 ms, aqm_interval: 300 ms, reverse: {rate: 5 Mbit/s, aqm: codel}",
        more="links: {out1: {rate: 9 Mbit/s, aqm: cake}, out2: {rate: 9 Mbit/s, aqm: red}}",
    )
    queues = {name: link(one, name).bottleneck for name in ("trunk", "out1", "out2")}
    told = {name: (queue.aqm_target, queue.aqm_interval) for name, queue in queues.items()}
    target, interval = Duration(20_000_000), Duration(300_000_000)
    assert told == {"trunk": (target, None), "out1": (None, interval), "out2": (None, None)}
    back = queues["trunk"].way_back
    assert (back.aqm, back.aqm_target, back.aqm_interval) == ("codel", target, interval)


def test_flows_take_the_pairs_in_turn_and_named_hosts_do_not_take_a_turn():
    flows = (
        "{cca: cubic, count: 2, stagger: 3 s, duration: 60 s}, {cca: reno, from: r2, to: h1, duration: 9 s}, "
        + ONE_FLOW
    )
    one = cell("dumbbell", flows=flows)
    assert [(flow.sender, flow.receiver) for flow in one.flows] == [
        ("h1", "r1"),
        ("h2", "r2"),
        ("r2", "h1"),
        ("h1", "r1"),
    ]
    assert [flow.start.seconds for flow in one.flows] == [0, 3, 0, 0]
    assert [flow.index for flow in one.flows] == [0, 1, 2, 3]
    assert [flow.group for flow in one.flows] == ["cubic.1", "cubic.1", "reno", "cubic.2"]


@pytest.mark.parametrize(
    ("slice_", "rtt", "first", "rivals"),
    [
        ("rtt_pair", "{h1: 60 ms, h2: 100 ms}", "", ""),
        ("rtt_pair", "{h1: 60 ms, h2: 100 ms}", ", from: h1", ", from: h2"),
        ("parking_lot", "40 ms", ", from: x1", ", from: h1"),
    ],
)
def test_a_path_is_the_same_where_a_condition_has_none_of_a_group(slice_, rtt, first, rivals):
    flows = f"{{cca: bbr1, duration: 9 s{first}}}, {{cca: cubic, count: $rivals, duration: 9 s{rivals}}}"
    alone, beside = (
        next(
            one
            for one in planned(slice_, rtt, flows=flows, more="vary: {rivals: [0, 1]}")
            if one.axes["rivals"] == rivals
        )
        for rivals in ("0", "1")
    )
    assert (len(alone.flows), len(beside.flows)) == (1, 2)
    assert alone.links == beside.links
    assert alone.flows[0] == beside.flows[0]


def test_a_round_trip_is_of_a_sender_of_some_condition():
    flows = f"{ONE_FLOW}, {{cca: cubic, count: 0, duration: 9 s}}"
    planned("rtt_pair", "{h1: 60 ms, h2: 100 ms}", flows=flows)
    with pytest.raises(PlanError, match="h2 sends too"):
        planned("rtt_pair", "{h1: 60 ms}", flows=flows)
    with pytest.raises(PlanError, match=r"rtt\.h2: no flow is sent from there \(senders: h1\)"):
        planned("rtt_pair", "{h1: 60 ms, h2: 100 ms}", flows=ONE_FLOW)


def test_a_group_without_flows_takes_no_turn():
    flows = f"{{cca: bbr1, count: 0, duration: 9 s}}, {ONE_FLOW}, {ONE_FLOW}"
    assert [flow.sender for flow in cell("rtt_pair", flows=flows).flows] == ["h1", "h2"]


def test_a_reverse_flow_sends_from_the_receiver_and_shapes_both_directions():
    forward, reverse = cell(), cell(flows="{cca: cubic, duration: 60 s, direction: reverse}")
    assert (reverse.flows[0].sender, reverse.flows[0].receiver) == ("h2", "h1")
    assert link(reverse, "trunk").bottleneck.both_directions
    assert not link(forward, "trunk").bottleneck.both_directions
    assert reverse.flows[0].rtt == forward.flows[0].rtt


def test_from_alone_goes_to_the_partner_of_the_pair():
    assert cell("dumbbell", flows="{cca: cubic, from: h2, duration: 60 s}").flows[0].receiver == "r2"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rtt": "{h9: 40 ms}"}, "path.rtt.h9: no flow is sent from there (senders: h1)"),
        ({"rtt": "{h1: 40 ms}", "slice_": "dumbbell", "flows": f"{ONE_FLOW}, {ONE_FLOW}"},
         "path.rtt: h2 sends too; add"),
        ({"flows": "{cca: cubic, from: h7, duration: 60 s}"}, "flows[0].from: the slice has no host 'h7'"),
        ({"flows": "{cca: cubic, from: h2, duration: 60 s}"},
         "flows[0]: h2 is in no pair of the slice; give both"),
        ({"flows": "{cca: cubic, from: h2, to: h2, duration: 60 s}"}, "from and to are both h2"),
        ({"slice_": "dumbbell",
          "flows": "{cca: cubic, from: h1, to: h2, duration: 9 s}"}, "from h1 to h2 crosses no bottleneck"),
        ({"more": "links: {trunk: {rtt: 0 s}}"},
         "from h1 to h2 has no round trip on any of its links (access, trunk); give one of them an rtt"),
        (
            {"flows": f"{ONE_FLOW.replace('}', ', maxrate: 1 Mbit/s}')}, {ONE_FLOW}"},
            "maxrate holds for all that h1 sends, but cubic.1 1 Mbit/s and cubic.2 has none; give each",
        ),
        ({"path": "buffer: 0.001 BDP"},
         "a buffer of 0.001 BDP is 50 bytes at 10 Mbit/s and 40 ms, less than one packet"),
        ({"path": "buffer: 1000000 BDP"}, "tc counts to 4294967295; lower the buffer or the rate"),
        ({"more": "links: {truk: {rate: 1 Mbit/s}}"},
         "links.truk: the slice has no link 'truk'; did you mean 'trunk'?"),
        ({"more": "steps: [{at: 9 s, link: x, rate: 1 Mbit/s}]"}, "steps[0].link: the slice has no link 'x'"),
        ({"more": "steps: [{at: 9 s, link: access, rate: 1 Mbit/s}]"},
         "link access has no queue; name a bottleneck"),
        ({"more": "steps: [{at: 9 s, link: access, rtt: 2 ms}]"}, "link access has no delay of its own"),
        ({"more": "steps: [{at: 9 s, buffer: 0.001 BDP}]"},
         "steps[0].buffer: a buffer of 0.001 BDP is 50 bytes"),
        (
            {"flows": "{cca: cubic, duration: 60 s, direction: reverse}", "path": "loss: 1 %"},
            "loss on link trunk would fall on the acknowledgements",
        ),
        (
            {"flows": "{cca: cubic, duration: 60 s, direction: reverse}", "path": "ack_aggregation: 1 ms"},
            "path.ack_aggregation: aggregation on link trunk would hold the data",
        ),
        (
            {"flows": "{cca: cubic, from: h2, to: h1, duration: 60 s}",
             "path": "loss: {rate: 1 %, position: before_bottleneck}"},
            "h2 stands right at bottleneck trunk",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_topology_is_refused_with_its_key(arguments, said):
    with pytest.raises(PlanError, match=re.escape(said)) as caught:
        cell(**arguments)
    assert str(caught.value).startswith("small: ")


def test_an_error_of_one_condition_names_the_condition():
    with pytest.raises(
        PlanError, match=re.escape("small: size=0.01BDP: path.buffer: link trunk: a buffer of 0.01 BDP")
    ):
        cell(path="buffer: $size", more="vary: {size: [1 BDP, 0.01 BDP]}")


def test_an_unknown_slice_is_a_mistake_in_the_file():
    with pytest.raises(SpecError, match=r"small: slice: no slice 'dumbell'; did you mean 'dumbbell'\?"):
        cell("dumbell")


def test_steps_resolve_buffers_with_what_is_in_force_at_their_time():
    more = (
        "steps: [{at: 30 s, buffer: 1 BDP}, {at: 10 s, rate: 20 Mbit/s}, "
        "{at: 20 s, rtt: 80 ms, buffer: 2 BDP}, {at: 40 s, rate: 5 Mbit/s}]"
    )
    one = cell(more=more)
    assert [(step.at.seconds, step.buffer_bytes) for step in one.steps] == [
        (10, None),
        (20, 400_000),
        (30, 200_000),
        (40, None),
    ]
    assert {step.link for step in one.steps} == {"trunk"}
    assert one.flows[0].rtt == Duration(40 * MS)
    assert one.bottleneck.buffer_bytes == 50_000


@given(bps=st.integers(8_000, 10**12), hz=st.integers(100, 1000), mtu=st.integers(576, 9000))
def test_a_burst_holds_a_tick_of_the_rate_and_a_frame_and_no_byte_more(bps, hz, mtu):
    burst = burst_bytes(Rate(bps), timer_hz=hz, frame_bytes=mtu + 14)
    assert burst >= mtu + 14
    assert 8 * hz * burst >= bps
    assert burst == mtu + 14 or 8 * hz * (burst - 1) < bps


def test_ids_are_fit_for_file_names_and_say_condition_and_repetition():
    cells = planned(path="loss: $loss", more="vary: {loss: [0.001 %, 1e-1 %]}")
    assert {one.id for one in cells} == {"loss=0.001%,r1", "loss=0.001%,r2", "loss=1e-1%,r1", "loss=1e-1%,r2"}
    assert {one.condition for one in cells} == {"loss=0.001%", "loss=1e-1%"}
    assert all(re.fullmatch(r"[\w.%+=,-]+", one.id) for one in cells)


def test_without_axes_a_cell_is_its_repetition_and_the_condition_the_experiment():
    assert [(one.id, one.condition, one.axes) for one in planned()] == [
        ("r1", "small", {}),
        ("r2", "small", {}),
    ]


def test_values_that_would_share_an_id_are_refused():
    with pytest.raises(PlanError, match="two cells are called x=ab"):
        planned("{name: two_site, sender_site: $x}", more="vary: {x: [ab, a b]}")


def test_an_id_too_long_for_a_file_name_is_refused():
    with pytest.raises(PlanError, match="shorten the names"):
        planned("{name: two_site, sender_site: $x}", more=f"vary: {{x: [{'a' * 250}]}}")


def test_a_block_is_a_repetition_and_holds_every_condition_once():
    cells = varied()
    assert [one.repetition for one in cells] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert {one.condition for one in cells[:4]} == {one.condition for one in cells[4:]}
    assert len({one.id for one in cells}) == 8


def test_the_run_seed_alone_decides_the_order():
    assert varied() == varied()
    orders = {tuple(one.id for one in varied(seed=seed)) for seed in range(12)}
    assert len(orders) > 6


def test_ids_and_seeds_stay_when_values_and_repetitions_are_added():
    small = {one.id: one.seed for one in varied()}
    grown = {one.id: one.seed for one in varied(ccas="reno, bbr1, cubic", losses="1 %, 5 %, 0.1 %", repeat=4)}
    assert small.items() < grown.items()


def test_the_order_of_a_block_stays_when_repetitions_are_added():
    assert [one.id for one in varied(repeat=3)][:8] == [one.id for one in varied()]


def test_seeds_are_those_of_earlier_versions():
    """A seed names a run in a publication: 63 bits of the SHA-256 of run seed, condition and repetition."""
    digest = hashlib.sha256(b"1\nsmall\n2").hexdigest()
    assert planned()[1].seed == int(digest[:16], 16) // 2


def test_seeds_are_63_bits_differ_and_depend_on_the_run_seed():
    seeds = [one.seed for one in varied()]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert max(seeds) > 2**60
    assert not set(seeds) & {one.seed for one in varied(seed=2)}


@pytest.mark.parametrize(
    ("cca", "rtt", "duration", "warm_up"),
    [
        ("cubic", "40 ms", "60 s", 20),
        ("bbr1", "40 ms", "60 s", 20),
        ("cubic", "500 ms", "60 s", 25),
        ("bbr1", "1 s", "200 s", 50),
        ("cubic", "40 ms", "8 s", 4),
        ("bbr1", "40 ms", "8 s", 4),
    ],
)
def test_warm_up_is_20_s_or_50_rtt_whatever_runs_and_at_most_half_the_run(cca, rtt, duration, warm_up):
    assert cell(rtt=rtt, flows=f"{{cca: {cca}, duration: {duration}}}").warm_up.seconds == warm_up


def test_a_warm_up_that_was_given_is_kept():
    assert cell(more="warm_up: 0 s").warm_up == Duration(0)


def traced(path="", flows="{cca: cubic, duration: 1 s}", more=""):
    """A cell of a link with 100 opportunities in the first half of every 200 ms, and one at the end."""
    trace = link_traces.parse("".join(f"{k}\n" for k in range(1, 101)) + "200\n", source="t")
    text = BASE.format(slice="two_site", rtt="40 ms", path=path, flows=flows, more=more)
    experiment = read.parse(text.replace("rate: 10 Mbit/s", "trace: t"), source="f.yaml")
    return expand.cells(experiment, definitions.load, seed=1, beside=Beside(traces={"t": trace}))[0]


def test_a_trace_gives_the_mean_rate_and_its_opportunities():
    one = traced()
    assert one.bottleneck.rate == Rate(6_060_000)
    assert one.steps == ()
    assert one.bottleneck.trace == LinkTrace(
        name="t", opportunities=101, length_ms=200, most_at_once=505, gaps_ms="1x100 100"
    )
    assert all(queue.trace is None for queue in cell().bottlenecks.values())


@pytest.mark.parametrize(
    "asked",
    [
        {"path": ", aqm: fq_codel"},
        {"more": "links: {trunk: {aqm: cake}}"},
        {"flows": "{cca: cubic, duration: 1 s, direction: reverse}"},
        {"more": "steps: [{at: 0.5 s, buffer: 20 kB}]"},
    ],
)
def test_where_tc_must_hold_the_queue_a_trace_is_a_step_for_every_change_of_its_rate(asked):
    one = traced(**asked)
    assert one.bottleneck.trace is None
    rated = [step for step in one.steps if step.rate is not None]
    assert [step.at.seconds for step in rated] == [k / 10 for k in range(10)]
    assert {step.rate for step in rated} == {Rate(12_000_000), Rate(120_000)}


def test_a_trace_that_was_not_read_is_said():
    text = BASE.format(slice="two_site", rtt="40 ms", path="", flows="{cca: cubic, duration: 1 s}", more="")
    experiment = read.parse(text.replace("rate: 10 Mbit/s", "trace: t"), source="f.yaml")
    with pytest.raises(PlanError, match=r"path\.trace: t was not read"):
        expand.cells(experiment, definitions.load, seed=1)


def test_a_trace_too_long_to_be_kept_with_every_cell_is_refused(monkeypatch):
    monkeypatch.setattr(limits, "OPPORTUNITIES", 100)
    with pytest.raises(PlanError, match="'t' has 101 opportunities; at most 100, cut it"):
        traced()


def test_traces_count_among_the_parts_of_all_cells(monkeypatch):
    one = traced()
    untraced = sum(len(part) for part in (one.hosts, one.switches, one.links, one.flows))
    parts = 2 * (untraced + len("1x100 100"))
    monkeypatch.setattr(expand, "_CHARACTERS_PER_PART", 1)
    monkeypatch.setattr(limits, "PARTS", parts)
    traced()
    monkeypatch.setattr(limits, "PARTS", parts - 1)
    with pytest.raises(PlanError, match="flows, steps and traces in all cells"):
        traced()


@pytest.mark.parametrize(
    ("slice_", "more", "flows", "said"),
    [
        ("two_site", "links: {trunk: {aqm: pie}}", "{cca: cubic, size: 1 MB}", "needs flows with a duration"),
        ("parking_lot", "", ONE_FLOW, "sets the rate of hop1 alone; use a slice with one bottleneck"),
        ("two_site", "links: {trunk: {rate: 1 Mbit/s}}", ONE_FLOW, "no links.trunk.rate"),
    ],
)
def test_a_trace_needs_one_bottleneck_of_its_own_and_in_bins_an_end(slice_, more, flows, said):
    text = BASE.format(slice=slice_, rtt="40 ms", path="", flows=flows, more=more)
    experiment = read.parse(text.replace("rate: 10 Mbit/s", "trace: t"), source="f.yaml")
    with pytest.raises(PlanError, match=re.escape(said)):
        expand.cells(
            experiment,
            definitions.load,
            seed=1,
            beside=Beside(traces={"t": link_traces.parse("1\n9\n", source="t")}),
        )


def test_an_estimate_is_the_capacity_of_the_bottleneck_while_flows_run():
    cells = planned(more="steps: [{at: 20 s, rate: 20 Mbit/s}, {at: 40 s, rate: 10 Mbit/s}]")
    total = estimate(cells, GUEST)
    assert (total.cells, total.clock_s) == (2, 120)
    assert total.bottleneck_bytes == 2 * (40 * 10e6 + 20 * 20e6) / 8
    assert total.bottleneck_packets == total.bottleneck_bytes / 1514


@pytest.mark.parametrize(
    ("offloads", "rate", "step", "cheaper"),
    [
        ("false", "10 Gbit/s", "", False),
        ("true", "10 Gbit/s", "", True),
        # While the rate falls the bucket stays.
        ("true", "10 Gbit/s", "steps: [{at: 20 s, rate: 100 Mbit/s}]", True),
        ("true", "100 Mbit/s", "steps: [{at: 20 s, rate: 10 Gbit/s}]", False),
    ],
)
def test_an_estimate_takes_super_packets_for_cheap_unless_a_limit_cuts_them(offloads, rate, step, cheaper):
    """The bucket of 10 Gbit/s holds 1.25 MB, that of 100 Mbit/s 12.5 kB."""
    big = cell(path=f"offloads: {offloads}", more=f"links: {{trunk: {{rate: {rate}}}}}\n{step}")
    assert packets_per_s(big, GUEST) == (GUEST.pace.whole_per_s if cheaper else GUEST.pace.packets_per_s)


def test_an_estimate_knows_that_loss_pacing_and_size_hold_flows_back():
    capacity = estimate([cell()], GUEST).bottleneck_bytes
    heavy = estimate([cell(path="loss: 5 %")], GUEST).bottleneck_bytes
    bbr = estimate([cell(path="loss: 5 %", flows="{cca: bbr1, duration: 60 s}")], GUEST).bottleneck_bytes
    paced = estimate([cell(flows="{cca: cubic, duration: 60 s, pacing: 1 Mbit/s}")], GUEST).bottleneck_bytes
    sized = estimate([cell(flows="{cca: cubic, size: 1 MB}")], GUEST)
    assert heavy < capacity / 5
    assert bbr == capacity
    assert paced == 60 * 1e6 / 8
    assert (sized.bottleneck_bytes, sized.clock_s) == (1e6, 0.8)


@pytest.mark.parametrize(
    ("changed", "more_s"),
    [
        # A switch, a link on each side of it and a socket, every 10 ms instead of every 100 ms.
        ({"more": "sample_period: 10 ms"}, 4 * (6000 - 600) / GUEST.pace.samples_per_s),
        ({"flows": "{cca: cubic, duration: 60 s, streams: 4}"}, 3 * 600 / GUEST.pace.samples_per_s),
        ({"path": "loss: 0 %"}, 0),
    ],
)
def test_what_a_cell_costs_grows_with_what_is_read_of_it(changed, more_s):
    plain, other = (estimate([cell(**how)], GUEST).computing_s for how in ({}, changed))
    assert other - plain == pytest.approx(more_s)


def test_a_packet_costs_more_where_the_agent_has_it_in_its_hands():
    text = BASE.format(slice="two_site", rtt="40 ms", path="", flows=ONE_FLOW, more="")
    traced = read.parse(text.replace("rate: 10 Mbit/s", "trace: t"), source="f.yaml")
    each_ms = "".join(f"{number}\n" for number in range(1, 1001))
    traces = {"t": link_traces.parse(each_ms, source="t")}
    (gated, *_) = expand.cells(traced, definitions.load, seed=1, beside=Beside(traces=traces))
    sized = cell(flows="{cca: cubic, size: 100 MB}")
    for handled, per_s in ((gated, GUEST.pace.handled_per_s), (sized, GUEST.pace.sized_per_s)):
        costs = estimate([handled], GUEST)
        assert costs.computing_s > costs.bottleneck_packets / per_s


def test_datagrams_cost_what_the_agent_spends_on_each():
    """A minute of 1 Mbit/s in frames of 1514 bytes."""
    flows = [f"{{cca: cubic, duration: 60 s}}, {{udp: {rate} Mbit/s, duration: 60 s}}" for rate in (1, 2)]
    one, two = (estimate([cell(flows=each)], GUEST).computing_s for each in flows)
    assert two - one == pytest.approx(60e6 / 8 / 1514 / GUEST.pace.datagrams_per_s, rel=1e-3)


def test_a_manifest_of_before_these_costs_were_told_apart_is_read():
    told = GUEST.model_dump(mode="json") | {"pace": {"packets_per_s": 150e3, "overhead_s": 3.0}}
    read_again = type(GUEST).model_validate(told)
    assert (read_again.pace.packets_per_s, read_again.pace.overhead_s) == (150e3, 3.0)


def test_a_flow_under_loss_is_expected_at_the_published_response_functions():
    """One loss in 33.9 million holds CUBIC at 10 Gbit/s, 100 ms, 1500-byte packets; Reno: sqrt(1.5/p)."""
    text = BASE.format(slice="two_site", rtt="100 ms", path=", loss: 29.5 ppb", flows=ONE_FLOW, more="")
    experiment = read.parse(text.replace("10 Mbit/s", "100 Gbit/s"), source="f.yaml")
    (cubic, *_), reno = (
        expand.cells(experiment, definitions.load, seed=1),
        cell(rtt="100 ms", path="loss: 1 %"),
    )
    windows = [estimate([one], GUEST).bottleneck_bytes / 60 * 0.1 / 1448 for one in (cubic, reno)]
    assert windows == pytest.approx([10e9 * 0.1 / 8 / 1500, (1.5 / 0.01) ** 0.5], rel=0.01)


def test_a_run_of_sizes_ends_when_the_bottleneck_has_carried_them():
    one = cell(flows="{cca: cubic, count: 2, size: 1 MB}, {cca: reno, start: 1 s, duration: 2 s}")
    assert end_of(one.flows, one.links) == Duration.parse("3 s")
    assert end_of(one.flows[:2], one.links) == Duration.parse("1.6 s")
