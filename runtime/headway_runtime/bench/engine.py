"""What a runner asks of the engine between runs: an arm in force, an empty cache, its figures."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway_runtime.bench.arms import APPLIED_FILE, ARM_FILE, Arm, Seating, priorities
from headway_runtime.bench.arms_file import replace_text
from headway_runtime.bench.plan_figures import latest_record
from headway_runtime.exchange import policy_file
from headway_runtime.policy import Mode, Policy, Scope, Stamp, Tenant, TrafficClass, encode

_TIMEOUT_S = 30.0
_POLL_S = 0.1
_SERVICE = "bench"
_KV_BLOCKS = re.compile(r'vllm:cache_config_info\{[^}]*num_gpu_blocks="(\d+)"')


class EngineError(Exception):
    """The engine does not do what a run needs; the message says what."""


@dataclass(frozen=True)
class Engine:
    """An engine under test.

    Attributes:
        url: of its server.
        run_dir: the directory it was started with.
    """

    url: str
    run_dir: Path

    def seat(
        self,
        arm: Arm,
        classes: Sequence[TrafficClass],
        serial: int,
        knock: Callable[[], None],
        tenants: Sequence[Tenant] = (),
    ) -> dict[str, Any]:
        """Put an arm in force.

        Args:
            arm: the arm.
            classes: the run's classes.
            serial: the run's number, higher than all before it.
            knock: sends a request and waits for its end; the engine changes arms when one comes.
            tenants: the run's tenants.

        Returns:
            The engine's word.

        Raises:
            EngineError: it did not take the arm.
        """
        # Whoever plans, the door tells tenants apart.
        told = policy(classes, serial, tenants) if arm.is_planned else no_policy(serial, tenants)
        policy_file.write(self.run_dir / policy_file.FILE_NAME, told)
        weights = {each.name: each.weight for each in tenants}
        seating = Seating(arm, serial, priorities(classes), weights)
        replace_text(self.run_dir / ARM_FILE, seating.to_json())
        until_s = time.monotonic() + _TIMEOUT_S
        while True:
            knock()
            word = self._word()
            is_seated = word["serial"] == serial
            if is_seated and (not arm.is_planned or self._policy_serial() == serial):
                return word
            if time.monotonic() > until_s:
                why = "it refuses the policy" if is_seated else "the engine is never idle"
                raise EngineError(f"arm {arm.name} is not in force: {why}")

    def _policy_serial(self) -> int | None:
        """Number of the run whose policy the last step was planned under."""
        record = latest_record(self.run_dir)
        return None if record is None else record.counter

    def _word(self) -> dict[str, Any]:
        try:
            text = (self.run_dir / APPLIED_FILE).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise EngineError("the engine does not know of arms: which scheduler has it?") from None
        word: dict[str, Any] = json.loads(text)
        return word

    def reset_prefix_cache(self) -> None:
        """Forget all prefixes, once no request is under way any more.

        Raises:
            EngineError: some still are after a while.
        """
        until_s = time.monotonic() + _TIMEOUT_S
        while not json.loads(self._ask("/reset_prefix_cache", "POST"))["success"]:
            if time.monotonic() > until_s:
                raise EngineError("the prefix cache cannot be reset: blocks are in use")
            time.sleep(_POLL_S)

    def kv_blocks(self) -> int | None:
        """KV blocks it has, None if it does not tell."""
        match = _KV_BLOCKS.search(self._ask("/metrics"))
        return int(match[1]) if match else None

    def _ask(self, path: str, method: str = "GET") -> str:
        request = urllib.request.Request(f"{self.url}{path}", method=method)  # noqa: S310 - own URL
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310
                return str(response.read().decode("utf-8"))
        except urllib.error.HTTPError as error:
            with error:
                raise EngineError(f"{path}: HTTP {error.code}") from None
        except OSError as error:
            raise EngineError(f"{path}: {error}") from error


def policy(classes: Sequence[TrafficClass], serial: int, tenants: Sequence[Tenant] = ()) -> bytes:
    """Headway's policy for a run: its classes and tenants and nothing else, no tuned value.

    Headers name the tenant, so that the benchmark needs no keys.
    """
    return encode(
        Policy(
            scope=Scope(_SERVICE),
            stamp=Stamp(generation=1, epoch=1, counter=serial),
            mode=Mode.ACT,
            classes=tuple(classes),
            tenants=tuple(tenants),
            trust_headers=bool(tenants),
        )
    )


def no_policy(serial: int, tenants: Sequence[Tenant]) -> bytes:
    """The policy for a run without Headway: nobody is refused, tenants are told apart."""
    return encode(
        Policy(
            scope=Scope(_SERVICE),
            stamp=Stamp(generation=1, epoch=1, counter=serial),
            mode=Mode.OFF,
            tenants=tuple(tenants),
            trust_headers=bool(tenants),
        )
    )
