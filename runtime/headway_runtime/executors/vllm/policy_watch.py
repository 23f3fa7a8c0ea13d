"""The policy in force in this engine, followed at the cost of one ``stat`` a step."""

from __future__ import annotations

import os
from pathlib import Path

from headway_runtime.exchange import policy_file
from headway_runtime.policy import Policy, PolicyFormatError, decode

_Identity = tuple[int, int, int]


class PolicyWatch:
    """Reads the policy file when it has changed, and keeps the last good policy.

    Attributes:
        policy: the policy in force, None until a good one was read.
        refused: files that were not taken because they were torn, foreign, newer or outdated.
    """

    def __init__(self, path: Path) -> None:
        # A string: os.stat on a Path converts it every time, and this runs every step.
        self._path = str(path)
        self._seen: _Identity | None = None
        self.policy: Policy | None = None
        self.refused = 0

    def refresh(self) -> bool:
        """Look at the file; whether another policy is in force now. Never fails."""
        try:
            status = os.stat(self._path)  # noqa: PTH116 - see above
        except OSError:
            return False
        # The inode too: two replacements may carry the same time on a coarse clock.
        identity = (status.st_mtime_ns, status.st_ino, status.st_size)
        if identity == self._seen:
            return False
        self._seen = identity
        return self._read()

    def _read(self) -> bool:
        try:
            policy = decode(policy_file.read(Path(self._path)))
        except (OSError, policy_file.PolicyFileError, PolicyFormatError):
            self.refused += 1
            return False
        if self.policy is not None and policy.stamp < self.policy.stamp:
            self.refused += 1
            return False
        changed = policy != self.policy
        self.policy = policy
        return changed
