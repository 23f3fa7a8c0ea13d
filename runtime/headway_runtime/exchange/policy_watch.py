"""The policy in force in this engine, followed at the cost of one system call a step."""

from __future__ import annotations

from pathlib import Path

from headway_runtime.exchange import policy_file
from headway_runtime.exchange.file_identity import FileIdentity, Identity
from headway_runtime.policy import Policy, PolicyFormatError, decode


class PolicyWatch:
    """Reads the policy file when it has changed, and keeps the last good policy.

    Attributes:
        policy: the policy in force, None until a good one was read.
        refused: files that were not taken because they were torn, foreign, newer or outdated.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = FileIdentity(str(path))
        self._seen: Identity | None = None
        self.policy: Policy | None = None
        self.refused = 0

    def refresh(self) -> bool:
        """Look at the file; whether another policy is in force now. Never fails."""
        try:
            identity = self._file.look()
        except OSError:
            return False
        if identity == self._seen:
            return False
        self._seen = identity
        return self._read()

    def _read(self) -> bool:
        try:
            policy = decode(policy_file.read(self._path))
        except (OSError, policy_file.PolicyFileError, PolicyFormatError):
            self.refused += 1
            return False
        if self.policy is not None and policy.stamp < self.policy.stamp:
            self.refused += 1
            return False
        changed = policy != self.policy
        self.policy = policy
        return changed
