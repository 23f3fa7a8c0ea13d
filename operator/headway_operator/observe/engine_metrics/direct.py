"""Asks pods themselves for their metrics: while Prometheus is away or late, or there is none."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

from headway_operator.observe.engine_metrics.names import ALL, CLASS_LABEL
from headway_operator.observe.engine_metrics.reading import Series

_READ = frozenset(ALL)


def parse_exposition(text: str) -> Iterator[Series]:
    """The series that decisions are made from, of an exposition in Prometheus's text format.

    Raises:
        ValueError: it is none.
    """
    wanted = "\n".join(line for line in text.splitlines() if _is_read(line))
    try:
        for family in text_string_to_metric_families(wanted + "\n"):
            for sample in family.samples:
                yield Series(sample.name, sample.labels.get(CLASS_LABEL, ""), float(sample.value))
    except LookupError:
        # The parser runs off the end of some labels: a pod must not end the operator by that.
        raise ValueError("labels that do not end") from None


def _is_read(line: str) -> bool:
    """Most lines are about other things, and parsing takes longer than this."""
    return line.partition("{")[0].partition(" ")[0] in _READ
