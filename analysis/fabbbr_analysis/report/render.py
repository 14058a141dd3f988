"""Records in, text out: the only place that knows the templates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from fabbbr.counts import counted


@dataclass(frozen=True, kw_only=True)
class BundledPlotly:
    """The plotly.js of the pages, which ``scripts/make-plotly.mjs`` makes: a quarter of the whole library."""

    version: str
    traces: frozenset[str]
    """Types of trace that it draws."""
    sha256: str
    """Of ``plotly.min.js``."""


_ICONS = {
    "reproduced": "✓",
    "compatible": "≈",
    "inconclusive": "?",
    "not reproduced": "✗",
    "not run": "–",
    "changed": "≠",
    "unchanged": "=",
    "unclear": "?",
}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fabbbr_analysis", "templates"),
        autoescape=select_autoescape(enabled_extensions=("html.j2",), default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["counted"] = counted
    environment.filters["icon"] = _ICONS.__getitem__
    environment.filters["slug"] = lambda text: text.replace(" ", "-")
    environment.filters["cell"] = _markdown_cell
    return environment


def _markdown_cell(text: object) -> str:
    """Keep ``text`` inside its cell of a Markdown table."""
    return str(text).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def html(template: str, **records: object) -> str:
    """Return a self-contained page: style, script and plotly.js are part of it."""
    environment = _environment()
    return environment.get_template(template).render(
        css=_own_file("page.css"),
        js=_own_file("page.js"),
        plotly_js=_bundle("plotly.min.js"),
        **records,
    )


def still(template: str, **records: object) -> str:
    """Return a page without a script; its pictures lie beside it."""
    return _environment().get_template(template).render(**records)


def markdown(template: str, **records: object) -> str:
    """Return the same in Markdown, without figures."""
    return _environment().get_template(template).render(**records)


@cache
def bundled_plotly() -> BundledPlotly:
    """Say what of plotly.js the pages carry."""
    described = json.loads(_bundle("bundle.json"))
    return BundledPlotly(
        version=described["plotly.js"], traces=frozenset(described["traces"]), sha256=described["sha256"]
    )


def _bundle(name: str) -> Markup:
    source = resources.files("fabbbr_analysis.report") / "bundle" / name
    return Markup(source.read_text(encoding="utf-8"))  # noqa: S704 - ships with the package


def _own_file(name: str) -> Markup:
    environment = _environment()
    source, _, _ = PackageLoader("fabbbr_analysis", "templates").get_source(environment, name)
    return Markup(source)  # noqa: S704 - ships with the package
