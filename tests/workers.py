"""Which test runs in which worker, where several share a run of all tests (`pytest -n auto`).

What uses the cluster stays together, and so does what shares an engine; the rest goes by file. The
cluster's tests take longest and mostly wait, so they begin and the others run beside them.
"""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadGroupScheduling

CLUSTER = "cluster"
"""The mark and the group of tests on the cluster."""

GROUP = "xdist_group"


class ByGroupOrFile(LoadGroupScheduling):
    """Tests of a group in one worker, and without a group tests of a file."""

    def _split_scope(self, nodeid: str) -> str:
        return super()._split_scope(nodeid).partition("::")[0]


def arrange(items: list[pytest.Item]) -> None:
    """Make a group of the cluster's tests, and move groups forward, that one before all others."""
    for item in items:
        if item.get_closest_marker(CLUSTER) is not None:
            item.add_marker(pytest.mark.xdist_group(CLUSTER))
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    group = item.get_closest_marker(GROUP)
    if group is None:
        return 2
    return 0 if group.args == (CLUSTER,) else 1
