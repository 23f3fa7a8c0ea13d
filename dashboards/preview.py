"""Draws a dashboard from a Prometheus into one HTML file, so that it can be looked at anywhere.

``python3 -m dashboards.preview --prometheus URL --namespace N --service S OUTPUT.html``
runs every query of every panel. It ends with 1 when one of them is refused, and lists the panels
without data. The file needs nothing from outside.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dashboards.drawing import Drawn, Line, page
from dashboards.prometheus_range import Prometheus, QueryError, TimeRange

DASHBOARD = Path(__file__).parent.parent / "charts/headway/files/dashboards/service-overview.json"

_POINTS = 400
"""Values drawn per series, at most about."""

_SCRAPES_PER_RATE = 4
"""Grafana's ``$__rate_interval`` is at least this many scrapes long."""


def draw(
    dashboard: Mapping[str, Any],
    prometheus: Prometheus,
    span: TimeRange,
    variables: Mapping[str, str],
) -> list[Drawn]:
    """Run all queries of a dashboard.

    Args:
        dashboard: as Grafana takes it in.
        prometheus: whom to ask.
        span: the time range to draw.
        variables: values of the dashboard's and of Grafana's own variables.
    """
    return [_draw(panel, prometheus, span, variables) for panel in dashboard["panels"]]


def _draw(
    panel: Mapping[str, Any], prometheus: Prometheus, span: TimeRange, variables: Mapping[str, str]
) -> Drawn:
    lines: list[Line] = []
    errors: list[str] = []
    for target in panel.get("targets", ()):
        when = TimeRange(span.end, span.end, span.step) if target.get("instant") else span
        try:
            answer = prometheus.query_range(_filled_in(target["expr"], variables), when)
        except QueryError as error:
            errors.append(str(error))
        else:
            template = target["legendFormat"]
            found = (Line(_legend(template, each.labels), each) for each in answer if each.points)
            lines.extend(sorted(found, key=lambda line: line.name))
    return Drawn(panel, tuple(lines), tuple(errors))


def grafana_variables(
    namespace: str, service: str, span: TimeRange, scrape_seconds: float
) -> dict[str, str]:
    """What Grafana would put into the queries."""
    rate_seconds = max(span.step + scrape_seconds, _SCRAPES_PER_RATE * scrape_seconds)
    return {
        "namespace": namespace,
        "service": service,
        "__rate_interval": f"{round(rate_seconds)}s",
        "__range": f"{round(span.end - span.start)}s",
    }


def _filled_in(expr: str, variables: Mapping[str, str]) -> str:
    # The longest first, for the one whose name begins another's.
    for name in sorted(variables, key=len, reverse=True):
        expr = expr.replace(f"${name}", variables[name])
    return expr


def _legend(template: str, labels: Mapping[str, str]) -> str:
    for name, value in labels.items():
        template = template.replace(f"{{{{{name}}}}}", value)
    return template


def report(panels: Sequence[Drawn]) -> tuple[list[str], list[str]]:
    """What to tell about the panels: errors, and titles of those without data."""
    errors = [f"{each.title}: {error}" for each in panels for error in each.errors]
    bare = (each for each in panels if not each.is_row and not each.lines and not each.errors)
    empty = [each.title for each in bare]
    return errors, empty


def main(arguments: list[str] | None = None) -> int:
    """Command line. Returns the exit status."""
    options = _parser().parse_args(arguments)
    end = options.end if options.end is not None else time.time()
    length = options.minutes * 60
    step = options.step if options.step is not None else max(1, round(length / _POINTS))
    span = TimeRange(end - length, end, step)
    variables = grafana_variables(options.namespace, options.service, span, options.scrape_seconds)
    dashboard = json.loads(options.dashboard.read_text(encoding="utf-8"))
    panels = draw(dashboard, Prometheus(options.prometheus), span, variables)
    heading = f"{dashboard['title']}: {options.namespace}/{options.service}"
    options.output.write_text(page(heading, span, panels), encoding="utf-8")
    errors, empty = report(panels)
    for title in empty:
        sys.stdout.write(f"no data: {title}\n")
    for error in errors:
        sys.stderr.write(f"error: {error}\n")
    return 1 if errors else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m dashboards.preview", description=__doc__)
    parser.add_argument("--prometheus", required=True, help="URL, such as http://localhost:9090")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--service", required=True)
    parser.add_argument("--minutes", type=float, default=30, help="length of the time range (30)")
    parser.add_argument("--end", type=float, help="where it ends, as Unix time; now by default")
    parser.add_argument("--step", type=float, help="seconds between two values")
    parser.add_argument(
        "--scrape-seconds",
        type=float,
        default=15,
        help="scrape interval that Grafana's data source is told; rates look back over four (15)",
    )
    parser.add_argument("--dashboard", type=Path, default=DASHBOARD, help="its JSON file")
    parser.add_argument("output", type=Path, help="HTML file to write")
    return parser


if __name__ == "__main__":
    sys.exit(main())
