"""The report as one HTML page that needs nothing beside itself: no script, style, font or picture from elsewhere."""

import base64
import hashlib

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mesa_pipeline.reports.document import Figure, Listing, Report
from mesa_pipeline.reports.svg import for_page

SCRIPT = "report.js"


def render_html(report: Report) -> str:
    """The whole page. Text is escaped; a content security policy lets no script run but the page's own."""
    environment = Environment(
        loader=PackageLoader("mesa_pipeline.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["figure"] = lambda item: isinstance(item, Figure)
    environment.tests["listing"] = lambda item: isinstance(item, Listing)
    script = Markup(environment.get_template(SCRIPT).render())
    return environment.get_template("report.html.j2").render(
        report=report,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        drawings={figure.name: Markup(for_page(figure.svg)) for figure in report.figures},
    )
