"""A report in headless Chromium: size, time to draw, printed pages, what is clipped.

    python -m benchmarks.page REPORT.html... [--shots DIR]

Drawing time is from the start of the load until all figures that are not folded away are drawn, the least of
three loads.
"""

from __future__ import annotations

import argparse
import base64
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

WIDTHS = (1400, 1000, 390)
_LOADS = 3
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
_UNTIL_DRAWN = (
    "const done = arguments[0]; const root = document.documentElement;"
    "const look = () => root.dataset.figures ? done(performance.now()) : setTimeout(look, 5); look();"
)
_CLIPPED = """
const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
const out = [];
for (const svg of document.querySelectorAll("figure .main-svg")) {
  const frame = svg.getBoundingClientRect();
  for (const text of svg.querySelectorAll("text")) {
    const box = text.getBoundingClientRect();
    const across = box.left > frame.left - 1 && box.right < frame.right + 1;
    const inside = across && box.top > frame.top - 1 && box.bottom < frame.bottom + 1;
    if (box.width && !inside)
      out.push(`${svg.closest("figure").id}: ${text.textContent}`);
  }
}
return [wide, out];
"""


def browser(profile: str) -> Any:  # noqa: ANN401 - selenium is a dependency of tests alone
    """Start Chromium without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver") or "chromedriver")
    )
    driver.set_script_timeout(120)
    return driver


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.html")
    parser.add_argument("--shots", type=Path, help="where pictures and PDFs go")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as profile:
        driver = browser(profile)
        try:
            for report in asked.reports:
                _show(driver, report.resolve(), asked.shots)
        finally:
            driver.quit()


def _show(driver: Any, report: Path, shots: Path | None) -> None:  # noqa: ANN401
    _at(driver, WIDTHS[0], 900)
    spans = [_load(driver, report) for _ in range(_LOADS)]
    pdf = base64.b64decode(
        driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True})[
            "data"
        ]
    )
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    print(
        f"{report.parent.name}: {report.stat().st_size / 1e6:.2f} MB, "
        f"drawn in {min(spans):.0f} ms, {pages} pages"
    )
    if shots is not None:
        shots.mkdir(parents=True, exist_ok=True)
        (shots / f"{report.parent.name}.pdf").write_bytes(pdf)
    for width in WIDTHS:
        _at(driver, width, 900)
        _load(driver, report)
        wider, clipped = driver.execute_script(_CLIPPED)
        if wider > 0 or clipped:
            print(f"  at {width} px: the page is {wider} px wider than the screen; clipped: {clipped}")
        if shots is not None:
            height = driver.execute_script("return document.documentElement.scrollHeight")
            _at(driver, width, height)
            picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
            (shots / f"{report.parent.name}-{width}.png").write_bytes(base64.b64decode(picture))


def _at(driver: Any, width: int, height: int) -> None:  # noqa: ANN401
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def _load(driver: Any, report: Path) -> float:  # noqa: ANN401
    """Milliseconds from the start of the load until all open figures are drawn."""
    driver.get(report.as_uri())
    return float(driver.execute_async_script(_UNTIL_DRAWN))


if __name__ == "__main__":
    main()
