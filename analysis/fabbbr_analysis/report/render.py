"""Records in, text out: the only place that knows the templates."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from plotly.offline import get_plotlyjs

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
        plotly_js=Markup(get_plotlyjs()),  # noqa: S704 - the library's own file
        **records,
    )


def still(template: str, **records: object) -> str:
    """Return a page without a script; its pictures lie beside it."""
    return _environment().get_template(template).render(**records)


def markdown(template: str, **records: object) -> str:
    """Return the same in Markdown, without figures."""
    return _environment().get_template(template).render(**records)


def _own_file(name: str) -> Markup:
    environment = _environment()
    source, _, _ = PackageLoader("fabbbr_analysis", "templates").get_source(environment, name)
    return Markup(source)  # noqa: S704 - ships with the package
