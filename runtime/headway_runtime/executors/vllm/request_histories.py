"""Follows each request from its arrival to its end.

A step costs what begins, ends or computes a prompt in it, and nothing for those that decode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Any

from headway_runtime.executors.vllm.class_accounts import ClassAccounts
from headway_runtime.executors.vllm.followed import Followed, TenantOf, one_tenant
from headway_runtime.executors.vllm.history_log import HistoryLog
from headway_runtime.executors.vllm.tenant_accounts import TenantAccounts
from headway_runtime.executors.vllm.under_way import UnderWay
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.history.lifecycle import State
from headway_runtime.scheduling.history.request_history import RequestHistory
from headway_runtime.scheduling.history.work_done import Group, WorkDone
from headway_runtime.scheduling.reason import Reason

_NEW_TOKENS = attrgetter("new_token_ids")
_WAITED = (State.WAITING, State.PREEMPTED)
_END_BY_REASON = {"ABORT": State.ABORTED, "ERROR": State.FAILED}


class RequestHistories:
    """Requests under way, what has become of each, and who is told.

    Args:
        accounts: told of first tokens and ends.
        log: where histories are written.
        tenant_of: tells whose a request is; must not fail on what clients send.
        is_in_engine: tells whether vLLM has this request among its own: what ends a session, or
            goes on with it, comes as a request as well.
        tenants: told of ends, by whose they are.
    """

    def __init__(
        self,
        accounts: ClassAccounts,
        log: HistoryLog | None = None,
        tenant_of: TenantOf = one_tenant,
        is_in_engine: Callable[[Any], bool] = lambda _: True,
        tenants: TenantAccounts | None = None,
    ) -> None:
        self._tenants = tenants or TenantAccounts()
        self._accounts = accounts
        self._log = log or HistoryLog()
        self._tenant_of = tenant_of
        self._is_in_engine = is_in_engine
        self._done = WorkDone()
        self._under_way = UnderWay()

    def __len__(self) -> int:
        return len(self._under_way.requests)

    def arrived(self, request: Any, now_ns: int) -> None:
        """The engine has taken in a request, or a part of a session."""
        name = request.request_id
        known = self._under_way.requests.get(name)
        if known is not None and not known.request.is_finished():
            self._spoke(name, known, now_ns)
        elif self._is_in_engine(request):
            if known is not None:
                self._under_way.remove(name)
                self._log.left(known)
            try:
                self._follow(name, request, now_ns)
            except Exception as error:  # noqa: BLE001 - what becomes of all others is to be told
                self._under_way.remove(name)
                self._log.lost(error)

    def scheduled(self, output: Any, reasons: Iterable[Reason], now_ns: int) -> None:
        """A step was scheduled: vLLM's ``SchedulerOutput``, planned so for these reasons."""
        for name in output.preempted_req_ids or ():
            self._preempted(name, now_ns)
        for each in output.scheduled_new_reqs:
            self._admitted(each.req_id, output, now_ns)
        for name in output.scheduled_cached_reqs.resumed_req_ids:
            self._admitted(name, output, now_ns)
        if output.total_num_scheduled_tokens:
            self._done.step(reasons)
            if self._under_way.computing:
                self._chunks(output.num_scheduled_tokens)

    def tokens_came(self, outputs: Mapping[Any, Any], now_ns: int) -> tuple[int, list[str]]:
        """The output of a step: vLLM's ``EngineCoreOutputs`` by client.

        Returns:
            How many tokens there were, and which requests have ended.
        """
        tokens = 0
        ended: list[str] = []
        without_token = self._under_way.without_token
        for client in outputs.values():
            of_client = client.outputs
            # Whole lists at a time: this is all that is done for every token.
            tokens += sum(map(len, map(_NEW_TOKENS, of_client)))
            for each in _first_or_last(of_client, without_token):
                if each.new_token_ids and each.request_id in without_token:
                    self._token_came(each.request_id, now_ns)
                if each.finish_reason is not None:
                    self._stopped(each.request_id, each.finish_reason.name, now_ns)
                    ended.append(each.request_id)
        self._log.step_ended()
        return tokens, ended

    def ended(self, requests: Iterable[Any], now_ns: int, *, by_client: bool) -> None:
        """The engine has ended these requests from outside of a step.

        Args:
            requests: vLLM's requests.
            now_ns: now, nanoseconds since the epoch.
            by_client: whether their clients may have asked for it.
        """
        for each in requests:
            reason = each.get_finished_reason()
            name = reason.name if reason is not None else "ERROR"
            if name == "ABORT" and not by_client:
                name = "ERROR"
            self._ended(each.request_id, name, now_ns)

    def write(self, now_ns: int) -> None:
        """Write down what there is to tell."""
        self._log.write(self._under_way.requests, self._done, now_ns)
        self._tenants.write()

    def given_up(self, request_ids: Iterable[str], now_ns: int) -> None:
        """These cannot keep their TTFT any more."""
        for name in request_ids:
            followed = self._under_way.requests.get(name)
            if followed is not None and followed.history is not None:
                followed.history.given_up(now_ns)

    def _follow(self, name: str, request: Any, now_ns: int) -> None:
        promised = self._accounts.traffic_class(request)
        tenant = self._tenant_of(request)
        group = Group("" if promised is None else promised.name, tenant)
        number = self._done.number(group)
        history = RequestHistory(
            name,
            max(0, int(request.arrival_time * 1e9)),
            now_ns,
            self._done.reading,
            group=group,
            prompt_tokens=request.num_tokens,
            promised_ms=_promised_ms(promised),
        )
        # A pause of a session is nobody's fault, and no objective is for it.
        held_to = None if request.resumable else promised
        followed = Followed(request, held_to, history, number, tenant)
        self._under_way.add(name, followed)
        self._log.arrived(name, followed, now_ns)
        for each in self._under_way.sweep():
            self._log.left(each)

    def _spoke(self, name: str, followed: Followed, now_ns: int) -> None:
        """The client of a session has sent its next part; vLLM takes it up when it pauses."""
        history = followed.history
        if history is None or history.state is not State.PAUSED or followed.waits_for_client:
            return
        self._log.note(followed, RequestHistory.goes_on, now_ns, self._done.reading)
        self._log.changed(name, followed, now_ns)

    def _admitted(self, name: str, output: Any, now_ns: int) -> None:
        followed = self._under_way.requests.get(name)
        if followed is None:
            return
        if followed.history is not None and followed.history.state not in _WAITED:
            # It was sent back to the queue without a word, as a reset of the prefix cache does.
            self._preempted(name, now_ns)
        computed = followed.request.num_computed_tokens - output.num_scheduled_tokens.get(name, 0)
        reading = self._done.reading
        self._log.note(followed, RequestHistory.admitted, now_ns, reading, max(0, computed))
        self._under_way.computing[name] = followed
        self._under_way.without_token.add(name)

    def _chunks(self, tokens: Mapping[str, int]) -> None:
        """Parts of prompts are computed, or are not."""
        complete = []
        for name, followed in self._under_way.computing.items():
            chunk = tokens.get(name, 0)
            request = followed.request
            computed = request.num_computed_tokens
            if chunk:
                self._done.chunk(followed.group, chunk)
            self._log.note(followed, RequestHistory.chunk, chunk, computed - chunk)
            if computed >= request.num_tokens:
                complete.append(name)
        for name in complete:
            del self._under_way.computing[name]

    def _preempted(self, name: str, now_ns: int) -> None:
        followed = self._under_way.requests.get(name)
        if followed is None:
            return
        self._under_way.computing.pop(name, None)
        tokens = followed.request.num_tokens
        self._log.note(followed, RequestHistory.preempted, now_ns, self._done.reading, tokens)
        self._log.changed(name, followed, now_ns)

    def _token_came(self, name: str, now_ns: int) -> None:
        followed = self._under_way.requests[name]
        if name in self._under_way.computing:
            # It was on its way when the request lost its KV blocks; its prompt is still computed.
            self._log.note(followed, RequestHistory.late_token_came, now_ns)
        else:
            self._under_way.without_token.discard(name)
            self._log.note(followed, RequestHistory.token_came, now_ns, self._done.reading)
        if followed.first_token_ns is None:
            followed.first_token_ns = now_ns
            self._accounts.first_token(followed, now_ns)

    def _stopped(self, name: str, reason: str, now_ns: int) -> None:
        """VLLM has told an end, of the request or of a part of a session."""
        followed = self._under_way.requests.get(name)
        if followed is None or not followed.is_between_turns:
            self._ended(name, reason, now_ns)
            return
        self._under_way.computing.pop(name, None)
        self._under_way.without_token.discard(name)
        self._log.note(followed, RequestHistory.turn_ended, now_ns, self._done.reading)
        self._spoke(name, followed, now_ns)
        self._log.changed(name, followed, now_ns)

    def _ended(self, name: str, reason: str, now_ns: int) -> None:
        followed = self._under_way.remove(name)
        if followed is None:
            return
        state = _END_BY_REASON.get(reason, State.FINISHED)
        tokens = followed.request.num_output_tokens
        reading = self._done.reading
        self._log.note(followed, RequestHistory.ended, state, now_ns, reading, tokens)
        attained = self._accounts.ended(followed, reason, now_ns)
        self._tenants.ended(followed, now_ns, attained=attained)
        self._log.ended(followed)


def _promised_ms(promised: TrafficClass | None) -> tuple[int, int]:
    return (0, 0) if promised is None else (promised.ttft_ms or 0, promised.tpot_ms or 0)


def _first_or_last(outputs: Sequence[Any], without_token: AbstractSet[str]) -> list[Any]:
    """Outputs of requests whose next token counts, or that have ended."""
    if not without_token:
        return [each for each in outputs if each.finish_reason is not None]
    return [
        each
        for each in outputs
        if each.finish_reason is not None or each.request_id in without_token
    ]
