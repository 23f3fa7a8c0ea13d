"""Keeps who is under way in this engine, for the one that starts after it has died.

vLLM gives a plug-in no word when a step fails: the process ends. So it is written down beforehand,
when a request gets into its first step, and struck out when it ends. What still stands there when
the next engine starts was under way when this one died.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from traceback import walk_tb
from typing import Any

from headway_runtime.exchange import suspects_file, under_way_file
from headway_runtime.exchange.declaration import FINGERPRINT_KEY
from headway_runtime.exchange.fingerprint import Fingerprints
from headway_runtime.exchange.suspects_file import SuspectsWriter, Told
from headway_runtime.exchange.under_way_file import UnderWayWriter, read_under_way
from headway_runtime.executors.vllm.followed import TenantOf, one_tenant
from headway_runtime.scheduling.quarantine.suspects import UnderWay, after_crash, cleared

_LOGGER = logging.getLogger("vllm.headway")

_REMEMBERED = 65_536
"""Most requests that are known: some end without a word."""

_ENDED_WELL = ("STOP", "LENGTH")


class CrashWatch:
    """Requests under way in an engine, and who is suspected from before.

    Args:
        prints: knows fingerprints.
        writer: writes down who is under way.
        suspects: writes down who is suspected.
        told: who is, when the engine starts.
        tenant_of: tells whose a request is.
    """

    def __init__(
        self,
        prints: Fingerprints,
        writer: UnderWayWriter,
        suspects: SuspectsWriter,
        told: Told,
        tenant_of: TenantOf = one_tenant,
    ) -> None:
        self._prints = prints
        self._writer = writer
        self._suspects = suspects
        self._told = told
        self._tenant_of = tenant_of
        self._known: dict[str, UnderWay] = {}
        self._slots: dict[str, int] = {}
        self._without_token: set[str] = set()
        self._on_trial: set[str] = set()
        self._arriving: str | None = None

    @classmethod
    def of_run(
        cls,
        run_dir: Path,
        rank: int,
        tenant_of: TenantOf = one_tenant,
        clock: Callable[[], float] = time.time,
    ) -> CrashWatch:
        """That of a run directory; who was under way there before is suspected now.

        Args:
            run_dir: the directory that outlives the engine.
            rank: the engine's data parallel rank.
            tenant_of: tells whose a request is.
            clock: tells the time, in seconds since the epoch.

        Raises:
            OSError: the directory cannot be used.
            ValueError: what is in the seal's file is none.
        """
        prints = Fingerprints.of_run(run_dir)
        under_way, suspects = (
            run_dir / module.file_name(rank) for module in (under_way_file, suspects_file)
        )
        told, died_with = suspects_file.read_told(suspects), read_under_way(under_way)
        if died_with:
            told = Told(told.crashes + 1, after_crash(told.suspects, died_with, clock()))
            _tell(told, len(died_with))
        writer = SuspectsWriter(suspects)
        writer.write(told)
        # Last: until then the crash has not been taken note of.
        return cls(prints, UnderWayWriter(under_way), writer, told, tenant_of)

    def arriving(self, request: Any) -> None:
        """VLLM is about to take in a request: that may break it as well."""
        fingerprint, name = self._fingerprint(request), request.request_id
        # The next part of a session comes as a request as well.
        if fingerprint is None or name in self._slots:
            return
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[name] = UnderWay(fingerprint)
        self._arriving = name
        self._begin(name)

    def added(self, request: Any) -> None:
        """VLLM has taken it in; it waits."""
        name, self._arriving = self._arriving, None
        known = None if name is None else self._known.get(name)
        if name is None or known is None or name != request.request_id:
            return
        self._end(name)
        self._known[name] = known._replace(tenant=self._tenant_of(request))
        if known.fingerprint in self._told.suspects:
            self._on_trial.add(name)

    def scheduled(self, output: Any) -> None:
        """A step is about to run: vLLM's ``SchedulerOutput``."""
        for each in output.scheduled_new_reqs:
            self._begin(each.req_id)

    def tokens_came(self, outputs: Any) -> None:
        """The output of a step: vLLM's ``EngineCoreOutputs`` by client."""
        if not self._without_token and not self._on_trial:
            return
        for client in outputs.values():
            for each in client.outputs:
                name = each.request_id
                if name in self._without_token and each.new_token_ids:
                    self._token_came(name)
                if name in self._on_trial and each.finish_reason is not None:
                    self._told_end(name, each.finish_reason.name)

    def given_up(self, requests: Iterable[Any]) -> None:
        """Clients want nothing more of these: where one met a stop string, that is its end."""
        for each in requests:
            known = self._known.get(each.request_id)
            has_token = known is not None and known.has_token
            if each.request_id in self._on_trial and has_token and each.sampling_params.stop:
                self._told_end(each.request_id, _ENDED_WELL[0])

    def ended(self, request_ids: Iterable[str]) -> None:
        """These are gone."""
        for each in request_ids:
            self._end(each)
            self._known.pop(each, None)
            self._on_trial.discard(each)

    def failed(self, error: BaseException) -> None:
        """VLLM's scheduler has failed, which ends the engine.

        Where it looked at one request just then, that one is suspected like one without a token: it
        may be under way for long, or wait.
        """
        name = _at_fault(error)
        if name is not None and name in self._known:
            self._end(name)
            self._known[name] = self._known[name]._replace(has_token=False)
            self._begin(name)

    def _fingerprint(self, request: Any) -> bytes | None:
        extra = getattr(request.sampling_params, "extra_args", None)
        return self._prints.read(extra.get(FINGERPRINT_KEY)) if isinstance(extra, dict) else None

    def _begin(self, name: str) -> None:
        known = self._known.get(name)
        if known is None or name in self._slots:
            return
        slot = self._writer.begin(known)
        if slot is not None:
            self._slots[name] = slot
            if not known.has_token:
                self._without_token.add(name)

    def _token_came(self, name: str) -> None:
        self._without_token.discard(name)
        known = self._known.get(name)
        if known is not None:
            self._known[name] = known = known._replace(has_token=True)
            self._writer.write(self._slots[name], known)

    def _told_end(self, name: str, reason: str) -> None:
        """A suspect has ended; if it did so well, nothing is held against it any more."""
        self._on_trial.discard(name)
        known = self._known.get(name)
        if known is not None and reason in _ENDED_WELL:
            suspects = cleared(self._told.suspects, known.fingerprint)
            self._told = self._told._replace(suspects=suspects)
            self._suspects.write(self._told)

    def _end(self, name: str) -> None:
        slot = self._slots.pop(name, None)
        if slot is not None:
            self._writer.end(slot)
        self._without_token.discard(name)


def _at_fault(error: BaseException) -> str | None:
    """The request that vLLM's own loops were at, by the name they have for it."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        name = getattr(frame.f_locals.get("request"), "request_id", None)
        if isinstance(name, str):
            return name
    return None


def _tell(told: Told, count: int) -> None:
    tried = sum(each.is_tried and not each.is_guilty for each in told.suspects.values())
    guilty = [key.hex() for key, each in told.suspects.items() if each.is_guilty]
    _LOGGER.warning(
        "Headway: the engine before this one died with %d requests under way; %d are tried one at "
        "a time, refused are: %s",
        *(count, tried, ", ".join(guilty) or "none"),
    )
