"""Progress lines with elapsed time, on standard error: standard output is for results."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

HEARTBEAT_SECONDS = 15.0


class Progress:
    """Prints what happens now, and that it still happens when it takes long."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        """Print one line with the seconds since the command began."""
        elapsed = time.monotonic() - self._start
        print(f"[{elapsed:6.1f} s] {text}", file=sys.stderr, flush=True)

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Announce a step that may take long, and repeat it while it lasts."""
        self.say(f"{text} ...")
        finished = threading.Event()
        heartbeat = threading.Thread(target=self._beat, args=(text, finished), daemon=True)
        heartbeat.start()
        try:
            yield
        finally:
            finished.set()
            heartbeat.join()

    def _beat(self, text: str, finished: threading.Event) -> None:
        begin = time.monotonic()
        while not finished.wait(HEARTBEAT_SECONDS):
            self.say(f"{text}: still at it after {time.monotonic() - begin:.0f} s")
