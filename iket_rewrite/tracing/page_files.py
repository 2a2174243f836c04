# SPDX-License-Identifier: Apache-2.0
"""What the page of a trace is made of: its template, its style sheets, and the parts of its script."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..rewriting.render import template_folder

#: In the order in which they are put together.
_SCRIPTS = (
    "data.js",
    "rows.js",
    "lines.js",
    "drawing.js",
    "overview.js",
    "timeline.js",
    "panels.js",
    "main.js",
    "choosing.js",
    "controls.js",
)


@cache
def environment() -> Any:
    """Return where the page's template is found."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Names are written by the page's script, as text; what little the template writes itself is escaped.
    return Environment(
        loader=FileSystemLoader(template_folder() / "report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )


@cache
def style(name: str) -> str:
    """Return a style sheet."""
    return (template_folder() / "report" / name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return the page's one script."""
    # A function of its own around all of it: the page defines nothing but what it means to.
    parts = [(template_folder() / "report" / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"
