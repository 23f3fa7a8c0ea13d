"""Decides about one request after the other: whose it is, and whether it is let in."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from headway_runtime.door.body import Body, UnreadableBodyError, read_body
from headway_runtime.door.decided import LetIn, Quarantined, Refused
from headway_runtime.door.docket import Docket, Held
from headway_runtime.door.engine_keys import accepted_digests
from headway_runtime.door.identity import Headers, Identity, identify, key_digest
from headway_runtime.door.ledger import Ledger, unseen_since, with_others
from headway_runtime.door.policy_view import PolicyView
from headway_runtime.exchange import admission_board, policy_file
from headway_runtime.exchange.admission_board import AdmissionBoardReader
from headway_runtime.exchange.declaration import (
    CLASS_KEY,
    FINGERPRINT_KEY,
    PROGRAM_KEY,
    TENANT_KEY,
)
from headway_runtime.exchange.let_in_file import LetInRequest, LetInWriter, OthersLetIn
from headway_runtime.exchange.policy_watch import PolicyWatch
from headway_runtime.exchange.refusal_counts import QUARANTINED, RefusalCounts
from headway_runtime.exchange.tenant_seal import TenantSeal
from headway_runtime.policy import Policy, TrafficClass
from headway_runtime.scheduling.admission.refusal import LetIn as BeforeIt
from headway_runtime.scheduling.admission.refusal import refusal
from headway_runtime.scheduling.quarantine.suspects import Standing

_Made = TypeVar("_Made")

RANK = 0
"""Of the engine process behind this API server: there is one, for data parallel engines are none
that Headway runs."""


@dataclass
class Desk:
    """What a door knows and shares with others through the run directory.

    Attributes:
        watch: follows the policy.
        board: what the engine lets know.
        seal: seals tenants' names.
        counts: counts refusals; None where the file could not be made.
        clock: tells the time, in seconds since the epoch.
        environment: of the process.
        docket: who may have killed the engine; None suspects nobody.
        told: tells other API servers of this engine what is let in here; None where the file could
            not be made.
        others: what they let in; None where there is nobody else.
    """

    watch: PolicyWatch
    board: AdmissionBoardReader
    seal: TenantSeal
    counts: RefusalCounts | None = None
    clock: Callable[[], float] = time.time
    environment: Mapping[str, str] | None = None
    docket: Docket | None = None
    told: LetInWriter | None = None
    others: OthersLetIn | None = None

    def __post_init__(self) -> None:
        self._ledger = Ledger()
        self._policy: Policy | None = None
        self._view = PolicyView.of(None)
        self._accepted: frozenset[str] | None = None

    @classmethod
    def of_run(cls, run_dir: Path) -> Desk:
        """The desk of a run directory.

        Raises:
            OSError: the directory cannot be used.
            ValueError: what is in the seal's file is none.
        """
        return cls(
            PolicyWatch(run_dir / policy_file.FILE_NAME),
            AdmissionBoardReader(run_dir / admission_board.file_name(RANK)),
            TenantSeal.of_run(run_dir),
            _unless_full(RefusalCounts, run_dir),
            docket=Docket.of_run(run_dir, RANK),
            told=_unless_full(LetInWriter, run_dir),
            others=OthersLetIn(run_dir),
        )

    def stranger(self, app: Any, headers: Headers) -> bool:
        """Whether the engine will turn this request away for want of a key; that is its affair."""
        accepted = self._keys(app)
        return bool(accepted) and key_digest(headers) not in accepted

    def consider(
        self, app: Any, headers: Headers, raw: bytes, *, in_sampling: bool
    ) -> LetIn | Refused | Quarantined:
        """Decide about a request.

        Args:
            app: vLLM's application.
            headers: of the request.
            raw: its body.
            in_sampling: whether its arguments belong within its sampling parameters.
        """
        view = self._look()
        try:
            body = read_body(raw, in_sampling=in_sampling)
        except UnreadableBodyError:
            return LetIn(raw)
        held = None if self.docket is None else self.docket.of(raw, body.document)
        if view.acts and held is not None and held.standing is Standing.QUARANTINED:
            return self._quarantined(held)
        who = self._who(app, headers, view)
        promised = view.traffic_class(who.class_name or body.class_name)
        refused = self._refused(view, promised, who.tenant, body)
        if refused is not None:
            return refused
        changed = body.with_own({**self._own(who), **self._mark(held)})
        on_trial = view.acts and held is not None and held.standing is Standing.TRIED
        return LetIn(changed, self._enter(view, promised, body), on_trial)

    def ended(self, ticket: int | None) -> None:
        """A request that was let in has its answer, or nobody waits for it any more."""
        if ticket is None:
            return
        self._ledger.leave(ticket)
        if self.told is not None:
            self.told.leave(ticket)

    def _look(self) -> PolicyView:
        self.watch.refresh()
        if self.watch.policy is not self._policy:
            self._policy = self.watch.policy
            self._view = PolicyView.of(self._policy)
        return self._view

    def _keys(self, app: Any) -> frozenset[str]:
        if self._accepted is None:
            environment = os.environ if self.environment is None else self.environment
            self._accepted = accepted_digests(app, environment)
        return self._accepted

    def _who(self, app: Any, headers: Headers, view: PolicyView) -> Identity:
        keys_are_checked = bool(self._keys(app))
        return identify(
            headers, key_digest(headers), view.tenants, keys_are_checked=keys_are_checked
        )

    def _refused(
        self, view: PolicyView, promised: TrafficClass | None, tenant: str, body: Body
    ) -> Refused | None:
        if promised is None or not view.refuses:
            return None
        board = self.board.read()
        if board is None:
            return None
        before = self._let_in_since(board.written_s, promised, view)
        refused = refusal(board, promised, tenant, body.prompt_tokens, before)
        if refused is None:
            return None
        if self.counts is not None:
            work_s = board.work_s(body.prompt_tokens)
            self.counts.refused(promised.name, refused.reason.value, work_s, self.clock())
        return Refused(refused, promised.name)

    def _let_in_since(self, known_s: float, promised: TrafficClass, view: PolicyView) -> BeforeIt:
        """What was let in and is not on a board that knows of what had come by this time."""
        self._ledger.seen(known_s)
        own = self._ledger.let_in(promised.name, view.ttft_ms)
        if self.others is None:
            return own
        others = self.others.since(unseen_since(known_s))
        return with_others(own, others, promised.name, view.ttft_ms)

    def _quarantined(self, held: Held) -> Quarantined:
        if self.counts is not None:
            self.counts.refused(*QUARANTINED)
        return Quarantined(held, 0 if held.suspect is None else held.suspect.in_all)

    def _mark(self, held: Held | None) -> dict[str, str]:
        """What tells the engine which request it is."""
        if self.docket is None or held is None:
            return {}
        return {FINGERPRINT_KEY: self.docket.prints.stamped(held.fingerprint)}

    def _enter(self, view: PolicyView, promised: TrafficClass | None, body: Body) -> int | None:
        """The ticket of a request that is let in; None where nobody is refused anyway."""
        if not view.refuses:
            return None
        name = "" if promised is None else promised.name
        request = LetInRequest(name, body.prompt_tokens, self.clock())
        ticket = self._ledger.enter(request)
        if self.told is not None:
            self.told.enter(ticket, request)
        return ticket

    def _own(self, who: Identity) -> dict[str, str]:
        """What the door has to say about a request; nothing of one whose tenant is unknown."""
        own = {CLASS_KEY: who.class_name, PROGRAM_KEY: who.program}
        told = {key: value for key, value in own.items() if value is not None}
        if who.tenant:
            told[TENANT_KEY] = self.seal.stamped(who.tenant)
        return told


def _unless_full(make: Callable[[Path], _Made], run_dir: Path) -> _Made | None:
    """What is made in the run directory, if that can be done.

    Refusals that nobody counts are better than requests that nobody looks at.
    """
    try:
        return make(run_dir)
    except OSError:
        return None
