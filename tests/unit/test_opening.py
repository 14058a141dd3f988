"""From a name to a plan: bundled experiments, files of one's own, and what is missing."""

import re
import shutil
from pathlib import Path

import pytest

from fabbbr import bundled
from fabbbr.errors import FabbbrError, PlanError, SpecError, UsageError
from fabbbr.plan import opening
from fabbbr.trust import Trust

MINE = """\
id: mine
title: My own
slice: ./lot.py
path: {trace: lte.up, rtt: 40 ms, buffer: 50 kB}
flows: [{cca: cubic, duration: 1 s}]
repeat: 1
"""


@pytest.fixture
def mine(tmp_path):
    shutil.copy(bundled.folder("slices") / "two_site.py", tmp_path / "lot.py")
    (tmp_path / "lot.py").write_text((tmp_path / "lot.py").read_text().replace("def two_site", "def lot"))
    (tmp_path / "lte.up").write_text("1\n100\n")
    (tmp_path / "mine.yaml").write_text(MINE)
    return tmp_path / "mine.yaml"


def test_slices_and_traces_are_looked_for_beside_the_experiment(mine):
    planned = opening.open_plan(str(mine), seed=1, trust=Trust(anything=True))
    assert planned.text == MINE
    assert planned.source_name == str(mine)
    assert planned.experiment.id == "mine"
    assert [cell.id for cell in planned.cells] == ["r1"]
    assert planned.cells[0].bottleneck.rate.bps == 240_000


def test_repeat_and_overrides_reach_the_plan(mine):
    planned = opening.open_plan(
        str(mine), seed=1, repeat=3, overrides=["path.mtu=9000"], trust=Trust(anything=True)
    )
    assert [cell.mtu_bytes for cell in planned.cells] == [9000] * 3


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("cardwel_f10", UsageError, "no experiment 'cardwel_f10'; did you mean 'cardwell_f10'?"),
        (
            "./nowhere.yaml",
            UsageError,
            "no experiment file nowhere.yaml; give an existing file, or a bundled name: c",
        ),
        ("nowhere.yml", UsageError, "no experiment file nowhere.yml"),
    ],
)
def test_an_unknown_experiment_is_refused_and_what_exists_is_listed(name, kind, said):
    with pytest.raises(kind, match=re.escape(said)):
        opening.open_plan(name, seed=1)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("mine.yaml", b"id: \xff\xfe", "byte 4 is not UTF-8; save the file as UTF-8"),
        ("mine.yaml", b"id: 1 2: 3", "mine.yaml:1: column 8: not YAML"),
        ("lte.up", b"1\nfast\n", "lte.up:2: 'fast' is not a whole number"),
        ("lte.up", None, "lte.up: No such file or directory"),
        ("lot.py", None, "no slice file"),
    ],
)
def test_a_damaged_file_is_refused_by_its_name(mine, file, content, said):
    path = mine.parent / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SpecError, match=re.escape(said)):
        opening.open_plan(str(mine), seed=1, trust=Trust(anything=True))


ALL_AT_ONCE = """\
id: mine
title: Mistakes of every kind
slice: ./lot.py
path: {trace: lte.up, rtt: 40 ms, buffer: 3 packets, mtu: 9}
links:
  trunc: {rtt: 3 ms}
flows:
  - {cca: cubbic, from: h9, to: h2, duration: 1.5 s}
  - {cca: $cca, to: h77, duration: 5 s}
steps:
  - {at: 1 s, link: qq, rtt: 3 ms}
vary:
  cca: [cubic, bbr1]
repeat: 0
"""

EXPECTED = [
    (4, "path.mtu", "greater than or equal to 576"),
    (4, "path.trace", "lte.up:2: 'fast' is not a whole number"),
    (6, "links.trunc", "the slice has no link 'trunc'; did you mean 'trunk'?"),
    (8, "flows[0].cca", "did you mean 'cubic'?"),
    (8, "flows[0].duration", "1.5 s is not whole seconds"),
    (8, "flows[0].from", "the slice has no host 'h9'"),
    (9, "flows[1].to", "the slice has no host 'h77'"),
    (11, "steps[0].link", "the slice has no link 'qq'"),
    (14, "repeat", "greater than or equal to 1"),
]


def refusal(path, **trust):
    with pytest.raises(FabbbrError) as caught:
        opening.open_plan(str(path), seed=1, trust=Trust(**trust))
    return caught.value


def test_mistakes_in_the_file_its_slice_its_trace_and_its_flows_come_at_once_with_their_lines(mine):
    mine.write_text(ALL_AT_ONCE)
    (mine.parent / "lte.up").write_text("1\nfast\n")
    error = refusal(mine, anything=True)
    assert type(error) is SpecError
    lines = str(error).splitlines()
    assert len(lines) == len(EXPECTED), lines
    for line, (number, key, said) in zip(lines, EXPECTED, strict=True):
        assert line.startswith(f"{mine}:{number}: {key}: "), line
        assert said in line


def test_nobody_is_asked_about_the_slice_of_a_file_that_cannot_be_run(mine):
    mine.write_text(ALL_AT_ONCE)

    def never(code):
        pytest.fail(f"asked about {code}")

    lines = str(refusal(mine, ask=never)).splitlines()
    assert [line for line in lines if "flows[0].cca" in line]
    assert not [line for line in lines if "h9" in line]


def test_what_some_conditions_cannot_have_is_said_with_one_of_them(tmp_path):
    text = (
        MINE.replace("./lot.py", "two_site")
        .replace("{trace: lte.up", "{rate: $rate")
        .replace("40 ms", "$rtt")
    )
    text = text.replace("50 kB", "0.1 BDP") + "vary: {rate: [10 Mbit/s, 20 Mbit/s], rtt: [1 ms, 90 ms]}\n"
    (tmp_path / "f.yaml").write_text(text)
    error = refusal(tmp_path / "f.yaml")
    assert type(error) is PlanError
    (first, second) = str(error).splitlines()
    assert f"{tmp_path}/f.yaml:4: path.buffer: link trunk: a buffer of 0.1 BDP is 125 bytes" in first
    assert first.endswith("(with rate=10Mbit,rtt=1ms)")
    assert second.endswith("(with rate=20Mbit,rtt=1ms)")


def test_a_module_that_is_not_there_does_not_hide_what_does_not_fit_the_slice(tmp_path):
    flows = "{cca: {module: ./none}, duration: 1.5 s}, {cca: reno, from: h9, duration: 3 s}"
    text = MINE.replace("./lot.py", "two_site").replace("trace: lte.up", "rate: 10 Mbit/s")
    text = text.replace("{cca: cubic, duration: 1 s}", flows) + "links: {trunc: {rtt: 2 ms}}\n"
    (tmp_path / "f.yaml").write_text(text)
    lines = str(refusal(tmp_path / "f.yaml")).splitlines()
    for key in ("flows[0].cca: ", "flows[0].duration: ", "flows[1].from: ", "links.trunc: "):
        assert any(f": {key}" in line for line in lines), lines


@pytest.mark.parametrize(
    ("slice_", "said"),
    [
        ("dumbell", "f.yaml:3: slice: no slice 'dumbell'; did you mean 'dumbbell'?"),
        ("{name: dumbbell, pairs: 3, hosts: five}", "f.yaml:3: slice.hosts: 'five': input should be a valid"),
        ("{name: dumbbell, pairs: 3, hosts: five}", "f.yaml:3: slice.pairs: unknown parameter (known: hosts"),
    ],
)
def test_what_is_wrong_with_a_slice_has_its_line(tmp_path, slice_, said):
    text = MINE.replace("./lot.py", slice_).replace("trace: lte.up", "rate: 10 Mbps")
    (tmp_path / "f.yaml").write_text(text)
    lines = str(refusal(tmp_path / "f.yaml")).splitlines()
    assert any(said in line for line in lines), lines
    assert any("f.yaml:4: path.rate: '10 Mbps'" in line for line in lines)


def test_parameters_of_a_slice_that_is_not_named_are_not_said_to_be_unknown(tmp_path):
    text = MINE.replace("./lot.py", "{use: parking_lot, hops: 3}").replace("trace: lte.up", "rate: 10 Mbit/s")
    (tmp_path / "f.yaml").write_text(text)
    said = str(refusal(tmp_path / "f.yaml"))
    assert "f.yaml:3: slice.name: is missing; add e.g. name: two_site" in said
    assert "hops" not in said


def test_a_folder_is_no_experiment(tmp_path):
    with pytest.raises(FabbbrError):
        opening.open_plan(f"{tmp_path}/", seed=1)


def test_the_wheels_copy_is_used_where_there_is_no_checkout(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "fabbbr"
    inside = package / "_bundled" / "experiments"
    inside.mkdir(parents=True)
    (inside / "other.yaml").write_text("")
    monkeypatch.setattr(bundled, "__file__", str(package / "bundled.py"))
    assert bundled.names("experiments") == ("other",)
    assert bundled.find("experiments", "other") == inside / "other.yaml"


def test_every_kind_of_bundled_thing_is_in_the_checkout():
    root = Path(bundled.__file__).resolve().parent.parent
    for kind in ("experiments", "slices", "playbooks"):
        assert bundled.folder(kind) == root / kind
