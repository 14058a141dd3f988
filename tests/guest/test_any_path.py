"""Whatever path a user describes: it is refused before it runs, or certified, reported, and possible.

``FABBBR_EXAMPLES=200 pytest -n0 tests/guest/test_any_path.py`` looks further; by itself it has the same few.
Nothing is lost at random here: of cells with loss one run in a hundred may be refused by chance. Of what
comes late by chance too much or too little is found once in a million.
"""

import os
from typing import get_args

import pytest
import yaml
from guest.cells import run
from guest.impossible import impossible
from hypothesis import HealthCheck, Phase, example, given, reject, settings
from hypothesis import strategies as st

from fabbbr.errors import FabbbrError
from fabbbr.model import Aqm
from fabbbr.plan.opening import open_plan
from fabbbr_analysis.report import write_report

pytestmark = pytest.mark.guest

EXAMPLES = int(os.environ.get("FABBBR_EXAMPLES", "0"))
RATES = ["2 Mbit/s", "10 Mbit/s", "25 Mbit/s", "60 Mbit/s"]
BUFFERS = ["0.5 BDP", "1 BDP", "3 BDP", "4 packets", "20 packets", "200 packets", "64 kB", "100 ms"]
BURSTS = ["1 packet", "12 packets", "30 kB", "200 kB", "2 BDP", "50 ms"]
AQMS = get_args(Aqm)
HELD = ["1 ms", {"least": "0.2 ms", "most": "3 ms"}]
LATE = [{"rate": "2 %", "late": "4 ms"}, {"rate": "0.5 %", "late": "50 ms"}]
CCAS = ["cubic", "reno", "bbr1", "bbr2", "bbr3", "vegas"]
FLOWS = [
    {"duration": "3 s"}, {"duration": "2 s", "streams": 3}, {"size": "60 kB"}, {"size": "1 MB"},
    {"arrivals": {"rate": "8 /s", "size": {"distribution": "exponential", "mean": "40 kB"}},
     "duration": "3 s"},
]  # fmt: skip
TRACE = "".join(
    f"{t_ms}\n" for t_ms in (*range(1, 120, 2), *range(150, 400), *[400] * 30, *range(420, 901, 5))
)
"""Opportunities that come singly, many at once and, for a while, not at all."""
OTHERS = [{"udp": "200 kbit/s", "duration": "2 s"}, {"ping": "50 ms"},
          {"video": {"bitrate": "1 Mbit/s", "chunk": "1 s"}, "cca": "cubic", "duration": "3 s"}]  # fmt: skip
TUNED = [
    {"tcp_rmem": "300 kB"},
    {"tcp_wmem": "64 kB"},
    {"tcp_sack": False},
    {"tcp_recovery": 0, "tcp_early_retrans": 0},
    {"tcp_window_scaling": False, "tcp_comp_sack_nr": 0},
]
STEPS = [
    [{"at": "1 s", "rate": "5 Mbit/s"}], [{"at": "1 s", "rate": "50 Mbit/s"}],
    [{"at": "1 s", "buffer": "50 packets"}], [{"at": "1 s", "rtt": "30 ms"}],
    [{"at": "1 s", "rtt": "15 ms", "loss": "100 %"}, {"at": "1.1 s", "loss": "0 %"}],
]  # fmt: skip

ALL_OF_THE_FIRST_LOST = """
id: lost
title: Ten packets, of which the window of the handshake lets seven go, into a buffer of two
slice: two_site
path: {rate: 2 Mbit/s, rtt: 10 ms, buffer: 2 packets, mtu: 9000}
flows: [{cca: vegas, size: 1 MB, count: 2}, {cca: bbr2, size: 1 MB}]
repeat: 1
"""


LATE_WHERE_THERE_IS_NO_DELAY = """
id: access
title: A tenth of the super-packets comes late from the access link
slice: two_site
path:
  {rate: 25 Mbit/s, rtt: 20 ms, buffer: 100 packets, aqm: cake, ecn: true, mtu: 9000, offloads: true}
links: {access: {reordering: {rate: 10 %, late: 0.4 ms}}}
flows:
  - {cca: bbr2, duration: 3 s, streams: 2}
  - {video: {bitrate: 2 Mbit/s, chunk: 1 s}, cca: cubic, duration: 3 s}
repeat: 1
"""


def sometimes(values):
    """One of them, or mostly none."""
    return st.one_of(st.none(), st.none(), values)


ways_back = st.one_of(
    st.sampled_from(RATES),
    st.fixed_dictionaries(
        {"rate": st.sampled_from(RATES)},
        optional={
            "buffer": st.sampled_from(BUFFERS),
            "burst": st.sampled_from(BURSTS),
            "aqm": st.sampled_from(AQMS),
        },
    ),
)
hops = st.fixed_dictionaries(
    {},
    optional={
        "rate": st.sampled_from(RATES), "rtt": st.sampled_from(["0 s", "7 ms", "50 ms"]),
        "buffer": st.sampled_from(BUFFERS), "burst": st.sampled_from(BURSTS),
        "aqm": st.sampled_from(AQMS), "reverse": ways_back, "reordering": st.sampled_from(LATE),
    },
)  # fmt: skip


@st.composite
def paths(draw, name):
    path = {"rate": draw(st.sampled_from(RATES)), "buffer": draw(st.sampled_from(BUFFERS))}
    by_sender = {"h1": draw(st.sampled_from(["5 ms", "30 ms"])), "h2": "60 ms"}
    path["rtt"] = (
        by_sender if name == "rtt_pair" else draw(st.sampled_from(["1 ms", "10 ms", "40 ms", "120 ms"]))
    )
    asked = {
        "burst": draw(sometimes(st.sampled_from(BURSTS))),
        "aqm": draw(sometimes(st.sampled_from(AQMS))),
        "ack_aggregation": draw(sometimes(st.sampled_from(HELD))),
        "reordering": draw(sometimes(st.sampled_from(LATE))),
        "offloads": draw(sometimes(st.just(value=True))),
        "mtu": draw(sometimes(st.sampled_from([576, 9000]))),
        "reverse": draw(sometimes(ways_back)),
        "trace": draw(sometimes(sometimes(st.just("any.up")))),
    }
    path |= {key: value for key, value in asked.items() if value is not None}
    if "trace" in path:
        del path["rate"]
    if path.get("aqm", "taildrop") != "taildrop":
        path["ecn"] = draw(st.booleans())
    return path


@st.composite
def groups(draw, number):
    group = {"cca": draw(st.sampled_from(CCAS)), **draw(st.sampled_from(FLOWS)), "label": f"g{number}"}
    asked = {
        "direction": draw(sometimes(st.just("reverse"))),
        "count": draw(sometimes(st.just(2))),
        "start": draw(sometimes(st.sampled_from(["300 ms", "1 s"]))) if number else None,
    }
    return group | {key: value for key, value in asked.items() if value is not None}


@st.composite
def experiments(draw):
    """The text of an experiment file; some are refused."""
    name, several = draw(
        st.sampled_from([("two_site", 0), ("dumbbell", 0), ("rtt_pair", 0), ("parking_lot", 3)])
    )
    flows = [draw(groups(number)) for number in range(draw(st.integers(1, 3)))]
    asked = {
        "id": "any", "title": "Any path", "slice": {"name": name, "hops": several} if several else name,
        "path": draw(paths(name)), "flows": flows + draw(st.lists(st.sampled_from(OTHERS), max_size=1)),
        "repeat": 1, "queue_delay": draw(st.sampled_from(["samples", "samples", "packets"])),
    }  # fmt: skip
    links = {f"hop{number}": draw(sometimes(hops)) for number in range(1, several + 1)}
    asked["links"] = {link: changes for link, changes in links.items() if changes}
    asked["steps"] = draw(sometimes(st.sampled_from(STEPS))) or []
    asked |= {"sysctl": tuned} if (tuned := draw(sometimes(st.sampled_from(TUNED)))) else {}
    return yaml.safe_dump(asked, sort_keys=False)


@settings(
    max_examples=EXAMPLES or 12, derandomize=not EXAMPLES,
    phases=[Phase.explicit, Phase.generate], deadline=None,
    suppress_health_check=list(HealthCheck), database=None,
)  # fmt: skip
@given(text=experiments())
@example(text=ALL_OF_THE_FIRST_LOST)
@example(text=LATE_WHERE_THERE_IS_NO_DELAY)
def test_every_path_is_refused_or_certified_and_its_report_says_what_can_be(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("any")
    file = folder / "any.yaml"
    (folder / "any.up").write_text(TRACE, encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    try:
        open_plan(str(file), seed=1)
    except FabbbrError:
        reject()
    ran = run(folder, text)
    assert ran.wrong() == {}
    assert ran.summary.failed == {}
    assert impossible(ran.set, ran.cell().manifest.cell) == []
    assert write_report([ran.set], folder / "report").exists()
