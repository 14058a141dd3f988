"""The report in headless Chromium: what only a browser can tell."""

from __future__ import annotations

import base64
import dataclasses
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import synthetic

from fabbbr_analysis.claims import observe
from fabbbr_analysis.report import write_comparison, write_report
from fabbbr_analysis.scoreboard import PAGE, write_scoreboard

pytestmark = pytest.mark.browser
webdriver = pytest.importorskip("selenium.webdriver")

PLAN = dataclasses.replace(
    synthetic.CARDWELL_F10,
    losses=("0.001 %", "1 %", "15 %"),
    repeat=3,
    broken_cells=("cca=cubic,loss=1%,r2",),
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESK, PHONE = (1280, 900), (360, 740)


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("browser")
    first = synthetic.run_set(PLAN, folder / "first", period_s=0.5)
    second = synthetic.run_set(PLAN, folder / "second", period_s=0.5, seed=2, gain=0.7)
    return {
        "report": write_report([first], folder / "report"),
        "comparison": write_comparison(first, second, folder / "comparison"),
        "scoreboard": _scoreboard(first, folder / "scoreboard"),
    }


def _scoreboard(run_set, folder: Path) -> Path:
    write_scoreboard([run_set], observe(run_set), folder, machine={"Machine": "2 CPUs"})
    return folder / PAGE


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    service = shutil.which("chromedriver")
    if service is None:
        pytest.skip("chromedriver is not on PATH: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(service))
    browser.set_script_timeout(60)
    yield browser
    browser.quit()


@contextmanager
def opened(driver, page: Path, *, size: tuple[int, int] = DESK, scheme: str = "light") -> Iterator[None]:
    """Show ``page`` and wait until every figure is drawn."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    preference = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", preference)
    driver.get(page.as_uri())
    driver.execute_async_script(
        "const done = arguments[0]; const root = document.documentElement;"
        "const look = () => root.dataset.figures ? done() : setTimeout(look, 20); look();"
    )
    yield


def unfold(driver):
    """Open what is folded away and wait until its figures are drawn."""
    driver.execute_async_script(
        "const done = arguments[0]; const folded = [...document.querySelectorAll('details.more')];"
        "folded.forEach(each => { each.open = true });"
        "const look = () => folded.every(each => each.dataset.figures) ? done() : setTimeout(look, 20);"
        "look();"
    )


@pytest.mark.parametrize("name", ["report", "comparison", "scoreboard"])
def test_every_figure_is_drawn_with_its_points(driver, pages, name):
    with opened(driver, pages[name]):
        unfold(driver)
        figures = driver.execute_script(
            "return [...document.querySelectorAll('figure')].map(f =>"
            " [f.id, f.querySelectorAll('svg .scatterlayer path').length])"
        )
    assert figures
    assert all(marks > 0 for _, marks in figures), figures


def test_six_figures_are_drawn_at_first_and_the_others_when_they_are_unfolded(driver, pages):
    drawn = "return [...document.querySelectorAll('figure')].map(f => f.querySelector('.main-svg') !== null)"
    with opened(driver, pages["report"]):
        before = driver.execute_script(drawn)
        unfold(driver)
        after = driver.execute_script(drawn)
    assert before == [True] * 6 + [False] * (len(before) - 6)
    assert len(after) == len(before) > 6
    assert all(after)


def test_the_first_figure_stands_on_the_first_screen(driver, pages):
    with opened(driver, pages["report"]):
        top, bottom = driver.execute_script(
            "const box = document.querySelector('figure .main-svg').getBoundingClientRect();"
            "return [box.top, box.bottom]"
        )
    assert 0 < top < bottom <= DESK[1]


@pytest.mark.parametrize("width", [1400, 1000, 390])
def test_no_text_of_a_figure_is_cut_off(driver, pages, width):
    with opened(driver, pages["report"], size=(width, 900)):
        unfold(driver)
        cut = driver.execute_script(
            """
            const out = [];
            for (const svg of document.querySelectorAll("figure .main-svg")) {
              const frame = svg.getBoundingClientRect();
              for (const text of svg.querySelectorAll("text")) {
                const box = text.getBoundingClientRect();
                const inside = box.left > frame.left - 1 && box.right < frame.right + 1
                  && box.top > frame.top - 1 && box.bottom < frame.bottom + 1;
                if (box.width && !inside) out.push([svg.closest("figure").id, text.textContent]);
              }
            }
            return out;
            """
        )
    assert cut == []


@pytest.mark.parametrize("name", ["report", "comparison", "scoreboard"])
def test_the_console_is_silent_and_nothing_is_fetched(driver, pages, name):
    driver.get_log("browser")
    with opened(driver, pages[name]):
        fetched = driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
        assert [entry for entry in fetched if not entry.startswith(("data:", "blob:"))] == []
        assert driver.get_log("browser") == []


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", ["report", "comparison", "scoreboard"])
def test_the_page_is_never_wider_than_the_screen(driver, pages, name, size):
    with opened(driver, pages[name], size=size):
        page, screen = driver.execute_script(
            "const e = document.documentElement; return [e.scrollWidth, e.clientWidth]"
        )
    assert page <= screen


def test_the_first_screen_answers_what_was_run_what_came_out_and_whether_to_trust_it(driver, pages):
    with opened(driver, pages["report"]):
        ends = driver.execute_script(
            "return [...document.querySelectorAll('.answers h2')].map(h => h.getBoundingClientRect().bottom)"
        )
    assert len(ends) == 3
    assert max(ends) < DESK[1]


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2 of an ``rgb(r, g, b)`` text."""
    shares = [int(number) / 255 for number in re.findall(r"\d+", colour)[:3]]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_is_legible_at_level_aa(driver, pages, scheme):
    with opened(driver, pages["report"], scheme=scheme):
        pairs = driver.execute_script(
            """
            const behind = (e) => {
              for (; e; e = e.parentElement) {
                const colour = getComputedStyle(e).backgroundColor;
                if (colour !== "rgba(0, 0, 0, 0)") return colour;
              }
              return "rgb(255, 255, 255)";
            };
            const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
            return [...document.querySelectorAll("main *, nav *, footer *")]
              .filter((e) => !e.closest("svg, script") && own(e))
              .map((e) => [e.textContent.trim().slice(0, 40), getComputedStyle(e).color, behind(e)]);
            """
        )
    assert len(pairs) > 100
    assert [pair for pair in pairs if contrast(pair[1], pair[2]) < 4.5] == []


def test_figures_follow_the_scheme_of_the_page(driver, pages):
    inks = {}
    for scheme in ("light", "dark"):
        with opened(driver, pages["report"], scheme=scheme):
            inks[scheme] = driver.execute_script(
                "return getComputedStyle(document.querySelector('.ytitle')).fill"
            )
            page = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            assert contrast(inks[scheme], page) > 7
    assert inks["light"] != inks["dark"]


def test_choosing_another_condition_redraws_the_figure(driver, pages):
    choose = (
        "const figure = document.querySelector('figure[id$=over-time]');"
        "const plot = figure.querySelector('.plot'); const before = plot.data[0].hovertemplate;"
        "const select = figure.querySelector('select'); select.selectedIndex = arguments[0];"
        "select.dispatchEvent(new Event('change')); return [before, plot.data[0].hovertemplate]"
    )
    with opened(driver, pages["report"]):
        unfold(driver)
        before, after = driver.execute_script(choose, 2)
    assert "loss=0.001%" in before
    assert "loss=15%" in after


def test_the_scale_button_says_and_does_what_it_is(driver, pages):
    press = (
        "const button = document.querySelector('button[data-scale]'); button.focus(); button.click();"
        "const plot = button.closest('figure').querySelector('.plot');"
        "return [button.getAttribute('aria-pressed'), plot._fullLayout.yaxis.type]"
    )
    with opened(driver, pages["report"]):
        assert driver.execute_script(press) == ["true", "log"]
        assert driver.execute_script(press) == ["false", "linear"]


def test_everything_that_scrolls_can_be_reached_by_keyboard(driver, pages):
    with opened(driver, pages["report"], size=PHONE):
        unreachable = driver.execute_script(
            "return [...document.querySelectorAll('main *')].filter(e => e.scrollWidth > e.clientWidth + 1"
            " && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.tabIndex < 0)"
            ".map(e => e.outerHTML.slice(0, 80))"
        )
    assert unreachable == []


def test_on_paper_the_page_is_a4_with_its_figures_and_light_from_a_dark_screen(driver, pages):
    with opened(driver, pages["report"], scheme="dark"):
        driver.execute_script(
            "addEventListener('beforeprint', () => { window.widths ="
            " [...document.querySelectorAll('.plot .main-svg')].map(e => e.getBoundingClientRect().width) })"
        )
        options = {"preferCSSPageSize": True, "printBackground": True}
        pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", options)["data"])
        widths = driver.execute_script("return window.widths")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 10
    boxes = {
        tuple(round(float(x)) for x in box.split()[2:])
        for box in re.findall(rb"/MediaBox\s*\[([^\]]*)\]", pdf)
    }
    assert boxes
    assert boxes <= {(595, 842), (596, 842), (595, 843)}
    assert widths
    assert max(widths) <= 690
