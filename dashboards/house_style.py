"""What Headway's panels have in common: size, legend, colours, the data source of the variable."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders.common import (
    GraphThresholdsStyleConfig,
    ReduceDataOptions,
    VizLegendOptions,
    VizTooltipOptions,
)
from grafana_foundation_sdk.builders.dashboard import ThresholdsConfig
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.models.common import (
    DataSourceRef,
    GraphThresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    LineInterpolation,
    SortOrder,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import Threshold, ThresholdsMode

DATA_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
"""The Prometheus that the dashboard's variable names."""

COLUMNS = 24
"""Width of Grafana's grid."""

_HEIGHT = 8
_GOOD, _BAD = "green", "red"


@dataclass(frozen=True)
class Query:
    """One query of a panel.

    Attributes:
        expr: PromQL with the dashboard's variables.
        legend: what its series are called; ``{{label}}`` stands for a label's value.
    """

    expr: str
    legend: str


@dataclass(frozen=True)
class Axis:
    """How values are shown.

    Attributes:
        unit: one of Grafana's unit names.
        low: where the axis begins, at the latest.
        high: where it ends, at the earliest.
        target: the value to keep; drawn as a dashed line.
        target_is_least: whether values below the target are bad, rather than above it.
        steps: values hold until they change, rather than move.
    """

    unit: str
    low: float | None = 0
    high: float | None = None
    target: float | None = None
    target_is_least: bool = False
    steps: bool = False


def graph(
    title: str, description: str, axis: Axis, *queries: Query, width: int = COLUMNS // 3
) -> Timeseries:
    """Series over time."""
    panel = (
        Timeseries()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit(axis.unit)
        .height(_HEIGHT)
        .span(width)
        .line_width(1)
        .fill_opacity(5)
        .show_points(VisibilityMode.NEVER)
        .legend(
            VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)  # noqa: FBT003 the library's way to say so
        )
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    )
    for target in _targets(queries):
        panel.with_target(target.range())
    if axis.low is not None:
        panel.axis_soft_min(axis.low)
    if axis.high is not None:
        panel.axis_soft_max(axis.high)
    if axis.target is not None:
        panel.thresholds(_thresholds(axis.target, least=axis.target_is_least))
        panel.thresholds_style(GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED))
    if axis.steps:
        panel.line_interpolation(LineInterpolation.STEP_AFTER)
    return panel


def number(
    title: str, description: str, axis: Axis, *queries: Query, width: int = COLUMNS // 3
) -> Stat:
    """One number for each series: its value at the end of the time range."""
    panel = (
        Stat()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit(axis.unit)
        .height(_HEIGHT)
        .span(width)
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
    )
    for target in _targets(queries):
        panel.with_target(target.instant())
    if axis.target is not None:
        panel.thresholds(_thresholds(axis.target, least=axis.target_is_least))
    return panel


def _targets(queries: Sequence[Query]) -> list[Dataquery]:
    return [
        Dataquery().expr(query.expr).legend_format(query.legend).ref_id(name)
        for name, query in zip(string.ascii_uppercase, queries, strict=False)
    ]


def _thresholds(target: float, *, least: bool) -> ThresholdsConfig:
    below, above = (_BAD, _GOOD) if least else (_GOOD, _BAD)
    return (
        ThresholdsConfig()
        .mode(ThresholdsMode.ABSOLUTE)
        .steps([Threshold(value=None, color=below), Threshold(value=target, color=above)])
    )
