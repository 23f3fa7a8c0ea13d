"""The policy in force in this pod: where it comes from and what replaces it."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from headway_runtime.exchange import policy_file
from headway_runtime.policy import Policy, PolicyFormatError, SignedPolicy, decode, encode
from headway_runtime.sidecar.acceptance import Outcome, accept
from headway_runtime.sidecar.settings import Settings
from headway_runtime.sidecar.verification import (
    BadSignatureError,
    KeyRing,
    KeysFormatError,
    UnknownKeyError,
)

_LOGGER = logging.getLogger("headway.sidecar")

BASELINE_FILE = "baseline.json"


@dataclass(frozen=True)
class Answer:
    """What is said about a policy that was sent.

    Attributes:
        outcome: what became of it.
        message: which field is wrong; never repeats content.
    """

    outcome: Outcome
    message: str = ""


class Policies:
    """Holds the policy in force and hands it to the engine.

    It survives a restart in the file that the engine reads. The baseline from the ConfigMap needs
    no signature: who may write ConfigMaps in this namespace may replace the keys as well.

    Attributes:
        current: the policy in force, None before the first.
        outcomes: how often each outcome was given to policies that were sent.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._file = settings.run_dir / policy_file.FILE_NAME
        self._keys = KeyRing({})
        self._seen: tuple[object, ...] | None = None
        self.current = self._from_last_run()
        self.outcomes: Counter[Outcome] = Counter()

    def follow_config_map(self) -> None:
        """Take in baseline and keys when the ConfigMap's directory has changed.

        Raises:
            OSError: the policy file cannot be written; the next call tries again.
        """
        identity = tuple(
            _identity(self._settings.policy_dir / name) for name in (BASELINE_FILE, "keys.json")
        )
        if identity == self._seen:
            return
        self._read_keys()
        self._read_baseline()
        # Last: a policy that could not be written is tried again.
        self._seen = identity

    def push(self, body: bytes) -> Answer:
        """Take in a policy that was sent: the body of the request.

        Raises:
            OSError: the policy file cannot be written.
        """
        answer = self._push(body)
        self.outcomes[answer.outcome] += 1
        if answer.outcome not in (Outcome.APPLIED, Outcome.ALREADY_APPLIED):
            _LOGGER.warning("refused a policy: %s %s", answer.outcome.value, answer.message)
        return answer

    def _push(self, body: bytes) -> Answer:
        try:
            signed = SignedPolicy.from_json(body)
            self._keys.verify(signed)
            candidate = decode(signed.payload)
        except PolicyFormatError as error:
            return Answer(Outcome.BAD_FORMAT, str(error))
        except UnknownKeyError:
            return Answer(Outcome.UNKNOWN_KEY)
        except BadSignatureError:
            return Answer(Outcome.BAD_SIGNATURE)
        return Answer(self._consider(candidate))

    def _consider(self, candidate: Policy) -> Outcome:
        settings = self._settings
        outcome = accept(candidate, self.current, settings.service_uid, settings.pod_uid)
        if outcome is Outcome.APPLIED:
            policy_file.write(self._file, encode(candidate))
            self.current = candidate
            _LOGGER.info("policy %s is in force", candidate.stamp)
        return outcome

    def _from_last_run(self) -> Policy | None:
        try:
            policy = decode(policy_file.read(self._file))
        except (OSError, policy_file.PolicyFileError, PolicyFormatError):
            return None
        covered = policy.scope.covers(self._settings.service_uid, self._settings.pod_uid)
        return policy if covered else None

    def _read_keys(self) -> None:
        try:
            self._keys = KeyRing.read(self._settings.policy_dir)
        except (OSError, KeysFormatError) as error:
            # The keys read before stay: an edit gone wrong must not cut the operator off.
            _LOGGER.warning("no keys: %s", error)

    def _read_baseline(self) -> None:
        try:
            baseline = decode((self._settings.policy_dir / BASELINE_FILE).read_bytes())
        except (OSError, PolicyFormatError) as error:
            _LOGGER.warning("no baseline policy: %s", error)
            return
        if self._consider(baseline) is Outcome.WRONG_SCOPE:
            _LOGGER.warning("the baseline policy is for another service")


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        # Follows the kubelet's ..data link, which is how a ConfigMap's files change all at once.
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
