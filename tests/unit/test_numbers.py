"""The numbers of README and docs: each stands where the table says, and one that changed is named."""

import dataclasses
from types import SimpleNamespace

import pytest

from benchmarks import numbers
from benchmarks.numbers import Number

ONE = Number(
    place="README.md", words="a factor of {value:.1f} ({low:.1f} to {high:.1f})", command="lossy --quick",
    claim="C1", value=15.2, low=12.65, high=16.64, n=5, image="aa13282b", seed=1,
)  # fmt: skip


def test_the_numbers_of_readme_and_docs_stand_where_the_table_says():
    table = numbers.read()
    assert list(numbers.not_there(table)) == []
    assert {number.place for number in table} >= {"README.md", "docs/findings.md", "docs/fund2023.md"}


def test_every_number_has_the_image_and_the_seed_that_it_was_measured_with():
    for number in numbers.read():
        assert number.low <= number.value <= number.high
        assert len(number.image) == 8, number
        assert number.n > 0


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("costs a factor of 15.2 (12.7 to 16.6) at 1 %", False),
        ("costs a factor of 15.2\n(12.7 to\n16.6)", False),
        ("costs a factor of 15.3 (12.7 to 16.6)", True),
        ("costs much", True),
    ],
)
def test_words_that_do_not_stand_in_their_place_are_named(tmp_path, text, missing):
    (tmp_path / "README.md").write_text(text)
    said = list(numbers.not_there([ONE], tmp_path))
    assert len(said) == missing
    assert not missing or "README.md: 'a factor of 15.2 (12.7 to 16.6)' (C1 of lossy --quick)" in said[0]


def run(value, low, high):
    verdicts = [
        SimpleNamespace(id="C2", losses="packets", value=1.0, low=1.0, high=1.0, n=5),
        SimpleNamespace(id="C1", losses="super-packets", value=2.0, low=2.0, high=2.0, n=5),
        SimpleNamespace(id="C1", losses="packets", value=value, low=low, high=high, n=3),
    ]
    place = SimpleNamespace(
        testbed=SimpleNamespace(machines={"guest": SimpleNamespace(image_sha256="b" * 64)})
    )
    made = SimpleNamespace(path="runs/x", manifest=SimpleNamespace(seed=7), origins=lambda: [place])
    return made, verdicts


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (15.2000534, None),
        (15.24, None),
        (14.0, "README.md: 'a factor of 15.2 (12.7 to 16.6)' no longer holds: 'a factor of 14.0 (12.7"),
    ],
)  # fmt: skip
def test_a_number_is_measured_by_its_claim_and_said_to_have_changed_when_its_words_do(
    monkeypatch, value, said
):
    made, verdicts = run(value, 12.65, 16.64)
    monkeypatch.setattr(numbers, "judge", lambda runs: verdicts)
    after = numbers.measured(ONE, made)
    assert (after.value, after.n, after.image, after.seed) == (float(f"{value:.6g}"), 3, "bbbbbbbb", 7)
    told = numbers.changed(ONE, after)
    assert (told is None) == (said is None)
    assert said is None or (told.startswith(said) and told.endswith("(image aa13282b → bbbbbbbb, seed 7)"))


def test_a_run_that_does_not_judge_the_claim_is_refused(monkeypatch):
    made, _ = run(1, 1, 1)
    monkeypatch.setattr(numbers, "judge", lambda runs: [])
    with pytest.raises(SystemExit, match="runs/x does not judge C1; is it the run of 'lossy --quick'"):
        numbers.measured(ONE, made)


def test_the_table_is_written_as_it_was_read(tmp_path):
    numbers.write([ONE, dataclasses.replace(ONE, claim="C2")], tmp_path / "n.csv")
    assert numbers.read(tmp_path / "n.csv") == [ONE, dataclasses.replace(ONE, claim="C2")]
