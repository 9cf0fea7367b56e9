"""Figures as SVG text: the same bytes on every run, and safe to stand in a page beside others."""

import io
import re
import warnings
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from mesa_pipeline.reports.theme import FONT_FAMILY, MARKER_EDGE, PAGE_VARIABLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SVG_NAMESPACE = "http://www.w3.org/2000/svg"
XLINK_NAMESPACE = "http://www.w3.org/1999/xlink"
ElementTree.register_namespace("", SVG_NAMESPACE)
ElementTree.register_namespace("xlink", XLINK_NAMESPACE)
_REFERENCE = re.compile(r"url\(#([^)]*)\)")


def to_svg(drawing: "Drawing", name: str, description: str) -> str:
    """A drawing as one SVG element: ids prefixed with ``name``, text kept as text, described for screen readers."""
    buffer = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's own fonts draw the text
        drawing.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(buffer.getvalue())
    for metadata in root.findall(f"{{{SVG_NAMESPACE}}}metadata"):
        root.remove(metadata)
    for element in root.iter():
        _prefix_ids(element, f"{name}-")
    root.set("role", "img")
    root.set("aria-label", description)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def on_paper(svg: str) -> str:
    """The same drawing on white, for pages of others whose dark mode would swallow its ink."""
    return svg.replace("<svg ", f'<svg style="background: {MARKER_EDGE}" ', 1)


def for_page(svg: str) -> str:
    """The same drawing in the page's own font and in colours that follow its light and dark modes."""
    for colour, variable in PAGE_VARIABLES.items():
        svg = svg.replace(f": {colour}", f": {variable}")
    return svg.replace(f"'{FONT_FAMILY}'", "inherit")


def _prefix_ids(element: ElementTree.Element, prefix: str) -> None:
    href = f"{{{XLINK_NAMESPACE}}}href"
    for key, value in list(element.attrib.items()):
        if key == "id":
            element.set(key, prefix + value)
        elif key == href and value.startswith("#"):
            element.set(key, f"#{prefix}{value[1:]}")
        elif "url(#" in value:
            element.set(key, _REFERENCE.sub(rf"url(#{prefix}\1)", value))
