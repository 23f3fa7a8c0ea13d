"""A dashboard's panels as one HTML page that needs nothing from outside."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from dashboards.prometheus_range import Series, TimeRange

_COLOURS = ("#3274d9", "#e0752d", "#56a64b", "#a352cc", "#c4162a", "#8f8f8f", "#0a9396", "#b5a000")
_ROW_PIXELS = 38
"""Height of one row of Grafana's grid, 24 columns wide."""

_GAP_STEPS = 1.5
"""A line is broken where values are further apart than this."""

_TICKS = {
    "percentunit": {"tickformat": ".2~%"},
    "s": {"tickformat": "~s", "ticksuffix": "s"},
    "reqps": {"ticksuffix": " req/s"},
    "ops": {"ticksuffix": "/s"},
    "short": {"exponentformat": "SI"},
    "none": {},
}
"""Grafana's units -> how plotly writes them."""

_STYLE = """
body { font: 14px sans-serif; margin: 16px; background: #f4f5f5; color: #222; }
main { display: grid; grid-template-columns: repeat(24, 1fr); gap: 8px; }
section { background: white; border: 1px solid #ddd; padding: 8px; min-width: 0; }
section h2 { font-size: 14px; margin: 0; }
section p { font-size: 12px; color: #666; margin: 2px 0; }
main > h1 { font-size: 16px; margin: 8px 0 0; grid-column: 1 / -1; }
.empty { color: #a00; font-size: 16px; text-align: center; padding: 60px 8px; }
.numbers { display: flex; justify-content: space-around; padding: 60px 8px; font-size: 32px; }
.numbers small { display: block; font-size: 12px; color: #666; }
"""


@dataclass(frozen=True)
class Line:
    """A series as it is drawn.

    Attributes:
        name: what the legend says.
        series: its values.
    """

    name: str
    series: Series


@dataclass(frozen=True)
class Drawn:
    """A panel and what its queries answered.

    Attributes:
        panel: as in the dashboard.
        lines: of all its queries.
        errors: of the queries that were refused.
    """

    panel: Mapping[str, Any]
    lines: tuple[Line, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Its title."""
        return str(self.panel["title"])

    @property
    def is_row(self) -> bool:
        """Whether it is only a heading."""
        return bool(self.panel["type"] == "row")


def page(heading: str, span: TimeRange, panels: Iterable[Drawn]) -> str:
    """The page.

    Args:
        heading: what it shows.
        span: the time range of all panels.
        panels: in the order of the dashboard.
    """
    times = " to ".join(f"{_moment(each):%Y-%m-%d %H:%M:%S}" for each in (span.start, span.end))
    body = "\n".join(_panel(each, span) for each in panels)
    return (
        f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{html.escape(heading)}</title>"
        f"<style>{_STYLE}</style><script>{get_plotlyjs()}</script>\n"
        f"<h1>{html.escape(heading)}</h1><p>{times} UTC</p>\n<main>\n{body}\n</main></html>\n"
    )


def _panel(drawn: Drawn, span: TimeRange) -> str:
    title = html.escape(drawn.title)
    if drawn.is_row:
        return f"<h1>{title}</h1>"
    place = drawn.panel["gridPos"]
    columns = f"grid-column: {place['x'] + 1} / span {place['w']}"
    text = html.escape(drawn.panel.get("description", ""))
    return (
        f'<section style="{columns}"><h2>{title}</h2><p>{text}</p>{_content(drawn, span)}</section>'
    )


def _content(drawn: Drawn, span: TimeRange) -> str:
    if drawn.errors:
        return f'<div class="empty">{html.escape("; ".join(drawn.errors))}</div>'
    if not drawn.lines:
        return '<div class="empty">no data</div>'
    return _numbers(drawn) if drawn.panel["type"] == "stat" else _graph(drawn, span)


def _numbers(drawn: Drawn) -> str:
    percent = drawn.panel["fieldConfig"]["defaults"]["unit"] == "percentunit"
    shown = (
        (line.name, f"{value:.1%}" if percent else f"{value:g}")
        for line in drawn.lines
        for _, value in line.series.points[-1:]
    )
    items = "".join(
        f"<div>{value}<small>{html.escape(name)}</small></div>" for name, value in shown
    )
    return f'<div class="numbers">{items}</div>'


def _graph(drawn: Drawn, span: TimeRange) -> str:
    defaults = drawn.panel["fieldConfig"]["defaults"]
    custom = defaults["custom"]
    figure = go.Figure()
    for number, line in enumerate(drawn.lines):
        at, values = _with_gaps(line.series.points, span.step)
        figure.add_scatter(
            x=at,
            y=values,
            name=line.name,
            mode="lines+markers" if len(values) == 1 else "lines",
            line={
                "color": _COLOURS[number % len(_COLOURS)],
                "width": 1.5,
                "shape": "hv" if custom.get("lineInterpolation") == "stepAfter" else "linear",
            },
        )
    if "thresholdsStyle" in custom:
        target = defaults["thresholds"]["steps"][1]["value"]
        figure.add_hline(target, line={"color": "#c4162a", "dash": "dash", "width": 1})
    figure.update_xaxes(range=[_moment(span.start), _moment(span.end)])
    figure.update_yaxes(range=_limits(drawn.lines, custom), **_TICKS.get(defaults["unit"], {}))
    figure.update_layout(
        height=drawn.panel["gridPos"]["h"] * _ROW_PIXELS,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        template="plotly_white",
        showlegend=True,
        legend={"orientation": "h", "y": -0.15},
        hovermode="x unified",
    )
    text: str = figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=f"panel-{drawn.panel['id']}",
        config={"displayModeBar": False, "responsive": True},
    )
    return text


def _with_gaps(
    points: Sequence[tuple[float, float]], step: float
) -> tuple[list[datetime], list[float | None]]:
    at: list[datetime] = []
    values: list[float | None] = []
    before = points[0][0]
    for moment, value in points:
        if moment - before > step * _GAP_STEPS:
            at.append(_moment(before + step))
            values.append(None)
        at.append(_moment(moment))
        values.append(value)
        before = moment
    return at, values


def _limits(lines: Sequence[Line], custom: Mapping[str, Any]) -> list[float]:
    values = [value for line in lines for _, value in line.series.points]
    low = min(custom.get("axisSoftMin", min(values)), *values)
    high = max(custom.get("axisSoftMax", max(values)), *values)
    margin = (high - low) * 0.05 or 1.0
    return [low - (margin if low != 0 else 0), high + margin]


def _moment(unix_seconds: float) -> datetime:
    return datetime.fromtimestamp(unix_seconds, timezone.utc)
