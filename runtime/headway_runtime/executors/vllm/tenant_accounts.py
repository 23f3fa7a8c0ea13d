"""Counts what tenants asked for and got, as their requests end."""

from __future__ import annotations

from headway_runtime.exchange.tenant_totals import TenantTotalsWriter
from headway_runtime.executors.vllm.followed import Followed
from headway_runtime.scheduling.tenants.totals import TenantTable, TenantTotals


class TenantAccounts:
    """What became of requests, by whose they are.

    Args:
        writer: the file; None writes none.
    """

    def __init__(self, writer: TenantTotalsWriter | None = None) -> None:
        self.table = TenantTable()
        self._writer = writer
        self._has_changed = False

    def ended(self, followed: Followed, now_ns: int, *, attained: bool | None) -> None:
        """A request has ended.

        Args:
            followed: the request.
            now_ns: now, nanoseconds of any clock.
            attained: whether it met every objective; None where its client gave it up, and then
                only what was computed for it counts.
        """
        history = followed.history
        totals = TenantTotals(
            requests=int(attained is not None),
            attained=int(attained is True),
            prompt_tokens=0 if history is None else history.chunk_tokens,
            generated_tokens=followed.request.num_output_tokens,
        )
        self.table.count(followed.tenant, totals, now_ns / 1e9)
        self._has_changed = True

    def write(self) -> None:
        """Write down what has changed."""
        if self._writer is not None and self._has_changed:
            self._writer.write(self.table.totals)
            self._has_changed = False
