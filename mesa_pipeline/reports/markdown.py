"""The report as Markdown: the same words and figures as the page, drawings linked as files beside it."""

import re

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mesa_pipeline.reports.document import Figure, Listing, Report

_SPECIAL = re.compile(r"[\\`*\[\]|~#!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def render_markdown(report: Report) -> str:
    """The whole document; foreign text is escaped, so that it shows as it is."""
    environment = Environment(
        loader=PackageLoader("mesa_pipeline.reports"),
        autoescape=False,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.tests["figure"] = lambda item: isinstance(item, Figure)
    environment.tests["listing"] = lambda item: isinstance(item, Listing)
    environment.filters["fenced"] = lambda listing: Markup(fenced(listing))  # shown as it is: a fence needs no escapes
    return environment.get_template("report.md.j2").render(report=report)


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it stands, also inside a table cell."""
    escaped = _SPECIAL.sub(lambda match: "\\" + match.group(), text)
    return "".join(_ENTITIES.get(character, character) for character in escaped)


def fenced(listing: Listing) -> str:
    """A listing between fences longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", listing.code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{listing.language}\n{listing.code}\n{fence}"


def _finalize(value: object) -> object:
    return value if isinstance(value, Markup) else escape_markdown(str(value))
