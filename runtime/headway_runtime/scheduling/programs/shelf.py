"""Which programs are kept: a bounded number, those that are used."""

from __future__ import annotations

from collections.abc import Iterator

from headway_runtime.scheduling.programs.state import Program, ProgramKey


class ProgramShelf:
    """Programs in order of use; idle ones have no request under way and go first.

    When it is full, a tenant that has more than half of it loses one of its own, so that no number
    of programs of one tenant makes more than half of it forget those of others.

    Attributes:
        most: most programs.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._idle: dict[ProgramKey, Program] = {}
        self._busy: dict[ProgramKey, Program] = {}
        self._of_tenant: dict[str, dict[ProgramKey, None]] = {}

    def __len__(self) -> int:
        return len(self._idle) + len(self._busy)

    def __iter__(self) -> Iterator[Program]:
        yield from self._idle.values()
        yield from self._busy.values()

    def get(self, key: ProgramKey) -> Program | None:
        """A program, without using it."""
        return self._idle.get(key) or self._busy.get(key)

    def use(self, key: ProgramKey) -> Program | None:
        """A program that a request has come for: from now on it is busy."""
        program = self._idle.pop(key, None) or self._busy.pop(key, None)
        if program is not None:
            self._busy[key] = program
            self._touch(key)
        return program

    def add(self, program: Program) -> Program | None:
        """Keep a busy program; what had to go for it."""
        tenant = program.key[0]
        victim = self._victim(tenant) if len(self) >= self.most else None
        gone = None if victim is None else self._remove(victim)
        self._busy[program.key] = program
        self._touch(program.key)
        return gone

    def rest(self, program: Program) -> None:
        """A program has no request under way any more."""
        if self._busy.pop(program.key, None) is not None:
            self._idle[program.key] = program

    def idle_before(self, time_s: float) -> Iterator[Program]:
        """Take out, one by one, what has been idle since before a time; amortised O(1) each."""
        while self._idle:
            key, program = next(iter(self._idle.items()))
            if program.last_end_s >= time_s:
                return
            yield self._remove(key)

    def _victim(self, tenant: str) -> ProgramKey:
        """The idle program used least recently, or else the busy one."""
        own = self._of_tenant.get(tenant, {})
        if 2 * len(own) > self.most:
            # The first ones of its own are its least recently used; a few may be busy.
            return next((key for key in own if key in self._idle), next(iter(own)))
        return next(iter(self._idle or self._busy))

    def _remove(self, key: ProgramKey) -> Program:
        own = self._of_tenant[key[0]]
        del own[key]
        if not own:
            del self._of_tenant[key[0]]
        return self._idle.pop(key, None) or self._busy.pop(key)

    def _touch(self, key: ProgramKey) -> None:
        own = self._of_tenant.setdefault(key[0], {})
        own.pop(key, None)
        own[key] = None
