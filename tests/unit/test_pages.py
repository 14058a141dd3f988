"""What holds for every page: it is whole, self-contained, and can be read without seeing it."""

import dataclasses
import re
from itertools import pairwise
from urllib.parse import unquote

import pytest
import synthetic
from html_document import Document

from fabbbr_analysis.claims import observe
from fabbbr_analysis.report import write_comparison, write_report
from fabbbr_analysis.scoreboard import PAGE, write_scoreboard

F10 = dataclasses.replace(synthetic.CARDWELL_F10, losses=("0.001 %", "0.1 %", "15 %"), repeat=3)
E1 = dataclasses.replace(synthetic.KNIT6_E1, rtts=("6 ms", "61 ms"), ccas=("cubic", "bbr1"), repeat=2)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    first, again = (synthetic.run_set(F10, folder / name, period_s=1.0) for name in ("f10", "again"))
    other = synthetic.run_set(E1, folder / "e1", period_s=1.0)
    write_scoreboard(
        [first, other], [*observe(first), *observe(other)], folder, machine={"Machine": "2 CPUs"}
    )
    return {
        "report": write_report([first, other], folder / "report"),
        "comparison": write_comparison(first, again, folder / "comparison"),
        "scoreboard": folder / PAGE,
    }


@pytest.fixture(scope="module", params=["report", "comparison", "scoreboard"])
def path(request, paths):
    return paths[request.param]


@pytest.fixture(scope="module")
def page(path):
    return Document(path.read_text(encoding="utf-8"))


def test_every_element_is_closed(page):
    assert page.open == []


def test_nothing_is_fetched_from_anywhere(page):
    assert not [each for each in page.of("script", "img", "iframe", "source") if "src" in each]
    assert [each["href"] for each in page.of("link")] == ["data:,"]
    (policy,) = [each["content"] for each in page.of("meta") if each.get("http-equiv")]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_every_link_leads_to_a_place_on_the_page_or_to_a_file_that_exists(page, path):
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    for link in page.of("a"):
        target = unquote(link["href"])
        if target.startswith("#"):
            assert target[1:] in ids
        else:
            assert (path.parent / target).is_file(), target


def test_ids_are_unique_and_every_reference_to_one_is_met(page):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {each["aria-labelledby"] for _, each in page.elements if "aria-labelledby" in each} <= set(ids)


def test_headings_start_at_one_and_skip_no_level(page):
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_table_has_a_caption_and_every_head_a_scope(page):
    assert len(page.of("table")) == len(page.of("caption")) > 0
    assert all(each.get("scope") in ("row", "col") for each in page.of("th"))


def test_every_drawing_says_in_words_what_it_shows(page):
    plots = [each for each in page.of("div") if each.get("class") == "plot"]
    drawings = [each for each in page.of("svg") if each.get("role") == "img"]
    assert plots
    assert all(len(each["aria-label"]) > 10 for each in (*plots, *drawings))
