"""A place in the API server's audit log that stays good when the log is rotated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.e2e import audit


@dataclass(frozen=True)
class Mark:
    """A position in a log.

    Attributes:
        log: the log's path.
        inode: of the file that had that path then.
        offset: bytes it had.
    """

    log: Path
    inode: int
    offset: int

    @classmethod
    def now(cls, log: Path) -> Mark:
        """The end of the log."""
        status = log.stat()
        return cls(log, status.st_ino, status.st_size)

    def parts(self) -> list[tuple[Path, int]]:
        """The files that hold what was written since, oldest first, each from an offset.

        Raises:
            RuntimeError: the file was deleted by now.
        """
        files = sorted(
            self.log.parent.glob(f"{self.log.stem}*{self.log.suffix}"),
            key=lambda file: file.stat().st_mtime_ns,
        )
        inodes = [file.stat().st_ino for file in files]
        if self.inode not in inodes:
            raise RuntimeError(f"{self.log}: more was written than is kept")
        first, *later = files[inodes.index(self.inode) :]
        return [(first, self.offset), *((file, 0) for file in later)]

    def writes(self, user: str) -> list[str]:
        """A user's writes since, its Lease apart, as ``verb resource name``."""
        return [each for part in self.parts() for each in audit.writes_since(*part, user)]

    def lease_writes(self, user: str) -> int:
        """A user's renewals of its Lease since."""
        return sum(audit.lease_writes_since(*part, user) for part in self.parts())
