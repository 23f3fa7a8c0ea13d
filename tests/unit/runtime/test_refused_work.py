"""Work that was refused is told with what engines are offered."""

from __future__ import annotations

import pytest

from headway_runtime.sidecar.token_load import with_refused


@pytest.mark.parametrize(
    ("told", "refused", "found"),
    [
        (0.6, 0.0, 0.6),
        (0.6, 0.3, 0.9),
        (0.6, 5.0, 1.2),  # the same request, again and again
        (0.0, 5.0, 0.0),
        (None, 5.0, None),
    ],
)
def test_refused_work_counts_as_much_as_the_other_at_most(
    told: float | None, refused: float, found: float | None
) -> None:
    assert with_refused(told, refused) == (found if found is None else pytest.approx(found))
