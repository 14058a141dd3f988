"""Files that nobody should write: each is an experiment or an error with its place and a remedy, soon."""

import re

import pytest
from counted_work import work
from hypothesis import given, settings
from hypothesis import strategies as st

from fabbbr import limits
from fabbbr.errors import PlanError, SpecError
from fabbbr.plan import definitions, expand
from fabbbr.spec import read
from fabbbr.spec.axes import read_axes
from fabbbr.spec.document import Items, Scalar, Table, compose

FULL = """\
id: full
title: Every key
source: Nobody 2026
slice: {name: dumbbell, hosts: 2, left_site: $site, right_site: $known}
path:
  rate: 10 Mbit/s
  rtt: 40 ms
  buffer: 2 BDP
  loss: {rate: 1 %, model: gilbert_elliott, recovery: 10 %, loss_in_bad: 90 %, loss_in_good: 0 %, position: after_bottleneck}
  ack_aggregation: {least: 0.2 ms, most: 1 ms}
  reordering: {rate: 1 %, late: 5 ms}
  aqm: fq_codel
  ecn: true
  mtu: 1500
  offloads: false
links: {in1: {rtt: 10 ms}, out1: {rate: 20 Mbit/s, buffer: 50 kB, burst: 9 kB, loss: 1 %, aqm: cake}}
flows:
  - {cca: $cca, count: 2, streams: 1, start: 0 s, stagger: 1 s, duration: 60 s, pacing: 5 Mbit/s, direction: forward, label: a}
  - {cca: bbr2, implementation: fabbbr, profile: v2alpha, size: 10 MB, from: h1, to: r1}
steps: [{at: 20 s, link: trunk, rate: 5 Mbit/s, rtt: 80 ms, buffer: 1 BDP}]
vary:
  - zip: {cca: [cubic, reno], site: [DALL, SALT]}
  - known: [SALT, UTAH]
except: [{cca: cubic, known: UTAH}]
repeat: 2
warm_up: 10 s
sample_period: 100 ms
quick: {repeat: 1, path: {rtt: 20 ms}, known: [SALT]}
full: {warm_up: 20 s, claims: [C1]}
claims: [C10.1, C10.2]
"""  # noqa: E501

VARIABLES_STAND_IN = ("slice", "path", "links", "flows", "steps", "warm_up", "sample_period")


def places(node, path=()):
    """Every position of a tree: each value, list and mapping."""
    yield path
    if isinstance(node, Items):
        for index, item in enumerate(node.nodes):
            yield from places(item, (*path, index))
    if isinstance(node, Table):
        for key, item in node.entries.items():
            yield from places(item, (*path, key))


TREE, _ = compose(FULL, source="f.yaml")
PLACES = [path for path in places(TREE) if path]
KEYS = [path for path in PLACES if isinstance(path[-1], str)]


def quoted(text):
    return '"' + "".join(f"\\U{ord(letter):08x}" for letter in text) + '"'


def written(node, path=(), *, put=None, names=None):
    """The tree as YAML, with other text at the paths of ``put`` and other key names at those of ``names``."""
    put, names = put or {}, names or {}
    if path in put:
        return put[path]
    if isinstance(node, Scalar):
        return node.text if re.fullmatch(r"[\w$. %/]+", node.text) else quoted(node.text)
    if isinstance(node, Items):
        items = (written(item, (*path, i), put=put, names=names) for i, item in enumerate(node.nodes))
        return "[" + ", ".join(items) + "]"
    pairs = [
        f"{names.get((*path, key), key)}: {written(item, (*path, key), put=put, names=names)}"
        for key, item in node.entries.items()
    ]
    return "\n".join(pairs) + "\n" if path == () else "{" + ", ".join(pairs) + "}"


def renamed(path, name):
    """The file with one key called ``name``."""
    return written(TREE, names={path: name})


def replaced(path, text):
    """The file with ``text`` in place of what stands at ``path``."""
    return written(TREE, put={path: text})


def refusal(text, **how):
    """What a SpecError says, None without one; any other exception fails the test."""
    try:
        read.parse(text, source="f.yaml", **how)
    except SpecError as error:
        return str(error)
    return None


def planned(text):
    """What a SpecError or PlanError says, None when there is a plan; any other exception fails the test."""
    try:
        experiment = read.parse(text, source="f.yaml")
        expand.cells(experiment, definitions.load, seed=1)
    except (SpecError, PlanError) as error:
        return str(error)
    return None


def spelt(path):
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def test_the_file_with_every_key_is_an_experiment_and_so_is_the_tree_written_out():
    assert refusal(FULL) is None
    assert refusal(written(TREE)) is None
    assert len(PLACES) > 80


@pytest.mark.parametrize("path", PLACES, ids=spelt)
@pytest.mark.parametrize("name", ["known", "unknown"])
def test_a_variable_means_something_or_is_a_mistake_with_line_and_key(path, name):
    said = refusal(replaced(path, f"${name}"))
    in_profile = path[1:] if path[0] in ("quick", "full") and len(path) > 1 else path
    if said is None:
        assert name == "known"
        assert in_profile[0] in VARIABLES_STAND_IN
    else:
        assert re.match(r"f\.yaml:\d+: [a-z]", said)


@pytest.mark.parametrize("path", KEYS, ids=spelt)
def test_no_key_is_a_variable(path):
    said = planned(renamed(path, "$known"))
    assert said is not None
    assert re.match(r"f\.yaml:\d+: |full: .*slice dumbbell: \$known: unknown parameter", said)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("repeat: 2", "repeat: $n",
         "f.yaml:25: repeat: $n: holds for all conditions, so no axis can stand here; write the value"),
        ("[C10.1, C10.2]", "[C10.1, $cca]", "f.yaml:30: claims[1]: $cca: holds for all conditions"),
        ("title: Every key", "title: $cca", "f.yaml:2: title: $cca: holds for all conditions"),
        ("repeat: 1,", "repeat: $cca,", "f.yaml:28: repeat: $cca: holds for all conditions"),
        ("repeat: 2", "repaet: $cca", "f.yaml:25: repaet: unknown key; did you mean 'repeat'?"),
        ("[SALT, UTAH]", "[$cca, SALT]",
         "f.yaml:23: vary.known: '$cca': the values of an axis are written out here"),
    ],
)  # fmt: skip
def test_a_variable_where_none_can_stand_is_refused_with_a_remedy(old, new, said):
    assert old in FULL
    assert any(line.startswith(said) for line in refusal(FULL.replace(old, new, 1)).splitlines())


SETUP_VALUES = [
    path
    for path in PLACES
    if path[0] in VARIABLES_STAND_IN and path[:1] != ("slice",) and path[-1] != "label" and path != ("steps",)
]


@pytest.mark.parametrize("path", SETUP_VALUES, ids=spelt)
def test_nonsense_is_complained_of_where_it_stands_and_nowhere_else(path):
    for line in refusal(replaced(path, "nonsense here")).splitlines():
        key = re.match(r"f\.yaml:\d+: ([^:]+): ", line)[1]
        assert key.startswith(spelt(path)) or "the axis is never used" in line


def test_a_title_may_speak_of_dollars():
    assert refusal(FULL.replace("Every key", "A link for $5 and $cca")) is None


CONTROLS = ["\x1b[2J", "\x07", "\x9b31m", "\x08", "\r", "\n", "\u202e", "\u2028", "\x7f", "\x00"]


@pytest.mark.parametrize("control", CONTROLS, ids=ascii)
@pytest.mark.parametrize(
    "path",
    [("id",), ("title",), ("source",), ("flows", 0, "label"), ("slice", "left_site"), ("claims", 0)],
    ids=spelt,
)
def test_control_characters_are_refused_with_line_and_key(path, control):
    said = refusal(replaced(path, quoted(f"a{control}b")))
    assert re.match(
        rf"f\.yaml:\d+: {re.escape(spelt(path))}: has (a line break|the control character U\+)", said
    )
    assert not re.search(r"[^\n -~]", said)


def test_control_characters_in_a_key_are_refused():
    said = refusal(renamed(("path", "rate"), quoted("ra\x1bte")))
    assert said.startswith("f.yaml:5: path: the key 'ra\\x1bte' has the control character U+001B; remove it")


def test_text_folded_over_lines_is_one_line():
    text = "title: >-\n  Goodput\n  under loss\n"
    assert read.parse(FULL.replace("title: Every key\n", text), source="f").title == "Goodput under loss"
    assert "has a line break; write it on one line" in refusal(
        FULL.replace("title: Every key\n", text.replace("-", ""))
    )


SMALL = """\
id: small
title: t
slice: two_site
path: {rate: 10 Mbit/s, rtt: $a, buffer: $b}
flows: [{cca: cubic, duration: 60 s}]
vary:
  a: [%s]
  b: [%s]
repeat: %s
"""


def small(a=2, b=2, repeat=2, more=""):
    rtts = ", ".join(f"{2 * k + 10} ms" for k in range(a))
    buffers = ", ".join(f"{k + 100} kB" for k in range(b))
    return SMALL % (rtts, buffers, repeat) + more


def exceptions(number):
    return "except:\n" + "".join(
        f"  - {{a: {2 * (k // 100) + 10} ms, b: {k % 100 + 100} kB}}\n" for k in range(number)
    )


LARGE = {
    "cells": (small(100, 100, 1000),
              "repeat: 10000 conditions × 1000 repetitions are 10000000 cells; at most 100000"),
    "conditions": (small(1000, 1000), "vary: 1000000 combinations; at most 10000"),
    "values": (
        small(100, 90).replace("60 s}", "60 s}" + ", {cca: cubic, duration: 60 s}" * 100),
        "vary: 9000 conditions of 206 values are 1854000; at most 1000000",
    ),
    "exceptions": (small(100, 100, 1, exceptions(5000)), "except: 5000 exceptions; at most 1000"),
    "keys": (small(more="".join(f"k{k}: 1\n" for k in range(5000))),
             "5007 keys in one mapping; at most 1000"),
    "steps": (
        small(more="steps: [" + ", ".join(["{at: 1 s, rate: 1 Mbit/s}"] * 10_001) + "]\n"),
        "steps: 10001 items in one list; at most 10000",
    ),
    "digits": (small(repeat="9" * 5000), "repeat: has 5000 characters; at most 1000"),
    "digits of a quantity": (
        small().replace("10 Mbit/s", "9" * 500 + " Mbit/s"),
        "characters) is not a rate: at most 100 characters are read",
    ),
    "depth": (small(more="x: " + "[" * 400 + "]" * 400),
              "column 24: not YAML: more than 20 lists and mappings inside one another"),
    "values of the file": (small(more="x: [" + "[a, a, a], " * 20_000 + "]"),
                           "not YAML: more than 60000 values in one file"),
    "characters": (small(more="# " + "x" * 1_000_000), "1000178 characters; at most 1000000"),
    "title": (small().replace("title: t", "title: " + "x" * 5000),
              "title: has 5000 characters; at most 1000"),
    "axes": (small().replace("vary:", "vary:" + "".join(f"\n  x{k}: [1]" for k in range(60))),
             "vary: 62 axes; at most 50"),
    "aliases": (
        small(more="x: &a [1]\n" + "".join((f"y{k}: &{chr(98 + k)} "
            f"[*{chr(97 + k)}, *{chr(97 + k)}]\n") for k in range(20))),
        "aliases (*name) are not read here",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), LARGE.values(), ids=LARGE)
def test_too_much_of_anything_is_refused_at_its_place_and_before_it_is_expanded(text, said):
    told = ""

    def read():
        nonlocal told
        told = refusal(text)

    assert work(read, most=8_000_000) < 8_000_000
    assert said in told
    assert told.startswith("f.yaml")


def test_what_is_large_but_not_too_large_is_planned():
    for text in (small(10, 10, 1000), small(10, 100, 1, exceptions(900))):
        assert refusal(text) is None


def test_an_exception_more_is_not_a_look_more_at_every_condition():
    counted = []
    for number in (100, 800):
        root, _ = compose(small(10, 100, 1, exceptions(number)), source="f.yaml")
        axes, problems = read_axes(root.entries["vary"], root.entries["except"])
        counted.append(work(lambda axes=axes: list(axes.combinations())))
        assert not problems
    assert counted[1] < 1.5 * counted[0]


def test_of_very_many_mistakes_the_first_are_shown_and_the_rest_counted():
    said = refusal(small(more="".join(f"k{k}: 1\n" for k in range(900)))).splitlines()
    assert len(said) == limits.MISTAKES_SHOWN + 1
    assert said[0].startswith("f.yaml:10: k0: unknown key")
    assert said[-1] == f"f.yaml: and {900 - limits.MISTAKES_SHOWN} more mistakes; correct these first"


def test_a_mistake_in_thousands_of_conditions_is_soon_found_and_said_once():
    text = small(100, 100, 1).replace("rate: 10 Mbit/s", "rate: 10 Mbit/s, mtu: 9")
    assert work(lambda: refusal(text), most=8_000_000) < 8_000_000
    assert len(refusal(text).splitlines()) == 1


def test_every_value_in_a_message_is_cut_short():
    values = ", ".join(f"{k} ms" for k in range(2, 9000, 2))
    said = refusal(SMALL % (values, "100 kB", 1) + "except: [{a: 3 ms}]\n")
    assert "'3 ms' is no value of a (values: 2 ms, 4 ms," in said
    assert "and 4469 more)" in said


HOSTILE = [
    "9" * 4301, "-1", "0", "1e99", "nan", ".inf", "-.inf", "1e-99 s", "", "''", "~", "null", "[]", "{}",
    "[[]]", "[1, 2]", "{a: {b: c}}", "x" * 2000, "$known", "$nothing", "$", "$$", quoted("\x1b[31m"),
    quoted("\ud800"), quoted("\U0010ffff"), "!!python/object:os.system x", "!!binary aGk=", "!!int 3", "&a b",
    "*a", "true", "010", "0x10", "1_000", "2026-11-21", "1:30", "../../etc/passwd", "/dev/zero", "100 Gbit/s",
    "1 ns", "86400 s", "1000000 BDP", "1 packets", "100 %", "400", "64", "h1", "trunk", "٣ ms", quoted(" "),
    "- x", ": x", "{? [a] : b}", "%", "#", "@", "`", "|", ">", '"\\U99999999"', "1e5 ms", "65500", "576",
    "reverse", "{h1: 40 ms, h2: 1 s}", "[{at: 1 s, rtt: 2 ns}]", "{rate: 100 %, position: before_bottleneck}",
]  # fmt: skip

MOST_WORK = 20_000_000
"""Instructions of all Python, the YAML reader's too: about ten times what the file takes as it is."""


HOSTILE_TEXT = st.sampled_from(HOSTILE) | st.text(max_size=20).map(quoted)


@settings(max_examples=100)
@given(changes=st.dictionaries(st.sampled_from(PLACES), HOSTILE_TEXT, min_size=1, max_size=3))
def test_hostile_values_anywhere_are_refused_or_planned_and_nothing_else(changes):
    text, told = written(TREE, put=changes), []
    assert work(lambda: told.append(planned(text)), most=MOST_WORK, folders=()) < MOST_WORK
    assert told[0] is None or not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", told[0])
