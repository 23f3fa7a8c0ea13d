"""The middleware that vLLM is started with: ``--middleware headway_runtime.door.middleware.Door``.

vLLM puts it around all of its application. A fault in it must never cost a request: whatever goes
wrong here, the request goes on as it came.
"""

from __future__ import annotations

import logging
import os
import traceback
from pathlib import Path
from typing import NamedTuple

from headway_runtime.door import refusals
from headway_runtime.door.asgi import (
    App,
    Receive,
    Scope,
    Send,
    begun_with_content,
    replay,
    reply,
    take_body,
    with_body,
)
from headway_runtime.door.decided import LetIn, Quarantined, Refused
from headway_runtime.door.desk import Desk
from headway_runtime.door.docket import Trials
from headway_runtime.door.refusals import Answer
from headway_runtime.exchange.trial_lock import FILE_NAME, TrialLock

RUN_DIR_VARIABLE = "HEADWAY_RUN_DIR"
"""Environment variable that names the directory shared with the engine and the sidecar."""

MOST_BODY_BYTES = 64 * 1024 * 1024
"""A longer body passes without being looked at."""

_ANTHROPIC = "/v1/messages"
_GENERATE = "/inference/v1/generate"
_PATHS = frozenset(
    (
        *("/v1/completions", "/v1/chat/completions", "/v1/chat/completions/batch"),
        *("/v1/responses", "/invocations", _ANTHROPIC, _GENERATE),
    )
)
_MOST_FAULTS = 16

_LOGGER = logging.getLogger("vllm.headway")


class _GoingOn(NamedTuple):
    """A request on its way to the application, its ticket at the desk, and if it is on trial."""

    scope: Scope
    receive: Receive
    ticket: int | None = None
    on_trial: bool = False


class Door:
    """Looks at requests for generation before the engine's application does.

    Args:
        app: the application.
        desk: decides; None makes one on the directory that the environment names.
    """

    def __init__(self, app: App, desk: Desk | None = None) -> None:
        self._app = app
        self._faults: set[tuple[str, str]] = set()
        run_dir = os.environ.get(RUN_DIR_VARIABLE)
        self._trials = Trials(None if run_dir is None else TrialLock(Path(run_dir) / FILE_NAME))
        self._desk = self._make_desk(run_dir) if desk is None else desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection; see the ASGI specification."""
        desk, path = self._desk, _generation_path(scope)
        if desk is None or path is None or self._is_left_alone(desk, scope):
            await self._app(scope, receive, send)
            return
        going = await self._look_at(desk, path, scope, receive)
        if isinstance(going, Answer):
            await reply(going, send)
            return
        try:
            if going.on_trial:
                await self._try(going, path, send)
            else:
                await self._app(going.scope, going.receive, begun_with_content(send))
        finally:
            desk.ended(going.ticket)

    async def _try(self, going: _GoingOn, path: str, send: Send) -> None:
        """Go on with a request that may be what killed the engine, while no other such does."""
        if not await self._trials.begin():
            await reply(refusals.held(anthropic=path == _ANTHROPIC), send)
            return
        try:
            await self._app(going.scope, going.receive, begun_with_content(send))
        finally:
            self._trials.end()

    async def _look_at(
        self, desk: Desk, path: str, scope: Scope, receive: Receive
    ) -> _GoingOn | Answer:
        """How a request goes on."""
        taken = await take_body(receive, MOST_BODY_BYTES)
        decided = None if taken.body is None else self._decide(desk, scope, path, taken.body)
        if isinstance(decided, Answer):
            return decided
        if decided is None:
            return _GoingOn(scope, replay(taken.messages, receive))
        messages = taken.messages
        if decided.body is not taken.body:
            scope, messages = with_body(scope, decided.body)
        return _GoingOn(scope, replay(messages, receive), decided.ticket, decided.on_trial)

    def _make_desk(self, run_dir: str | None) -> Desk | None:
        if run_dir is None:
            return None
        try:
            return Desk.of_run(Path(run_dir))
        except Exception as fault:  # noqa: BLE001 - see the module
            self._tell(fault)
            return None

    def _is_left_alone(self, desk: Desk, scope: Scope) -> bool:
        try:
            return _is_too_long(scope) or desk.stranger(scope.get("app"), scope["headers"])
        except Exception as fault:  # noqa: BLE001 - see the module
            self._tell(fault)
            return True

    def _decide(self, desk: Desk, scope: Scope, path: str, body: bytes) -> LetIn | Answer | None:
        """What becomes of a request; None leaves it as it is."""
        try:
            in_sampling = path == _GENERATE
            decided = desk.consider(
                scope.get("app"), scope["headers"], body, in_sampling=in_sampling
            )
            if not isinstance(decided, LetIn):
                return _answer(decided, anthropic=path == _ANTHROPIC)
        except Exception as fault:  # noqa: BLE001 - see the module
            self._tell(fault)
            return None
        return decided

    def _tell(self, fault: Exception) -> None:
        """Log a fault, once for each place: its kind and where, for its text may be a client's."""
        frames = traceback.extract_tb(fault.__traceback__)
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        known = type(fault).__name__, place
        if known in self._faults or len(self._faults) >= _MOST_FAULTS:
            return
        self._faults.add(known)
        _LOGGER.error("Headway's door lets requests pass as they are: %s at %s", *known)


def _answer(decided: Refused | Quarantined, *, anthropic: bool) -> Answer:
    if isinstance(decided, Refused):
        return refusals.answer(decided.refusal, decided.class_name, anthropic=anthropic)
    held = decided.held
    return refusals.quarantined(held.fingerprint, decided.crashes, held.left_s, anthropic=anthropic)


def _generation_path(scope: Scope) -> str | None:
    """The path within the application, None for what the door does not look at."""
    if scope["type"] != "http":
        return None
    path = scope["path"]
    if path not in _PATHS:
        root = scope.get("root_path")
        path = path.removeprefix(root) if root else None
    return path if path in _PATHS and scope["method"] == "POST" else None


def _is_too_long(scope: Scope) -> bool:
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return length.isdigit() and int(length[:20]) > MOST_BODY_BYTES
