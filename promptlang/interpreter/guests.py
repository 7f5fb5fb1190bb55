"""Guests: threads outside of the loop that work on what it gave them, and come back with the next statement of a run.

The model waits a moment for them, so that what they ask shares one pass: a program asks for the same, however fast its
own code is. Who takes long is not waited for, so that nobody else stands still.
"""

from dataclasses import dataclass
from threading import Lock
from time import monotonic

from promptlang.interpreter.threads import Threads

PATIENCE = 0.01
"""Seconds without news after which a guest is not waited for any more."""

MOST_PATIENCE = 0.25
"""Seconds that a guest is waited for at most, with news from it."""


@dataclass
class _Busy:
    """Since when a guest is at work, and when it was last heard of; in seconds of a clock."""

    since: float
    heard: float

    @property
    def patience_ends(self) -> float:
        return min(self.heard + PATIENCE, self.since + MOST_PATIENCE)


class Guests:
    """Who is at work outside.

    Args:
        threads: whose news end a wait.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._busy: dict[object, _Busy] = {}
        self._changing = Lock()

    def busy(self, guest: object) -> None:
        """Something was handed to a guest."""
        now = monotonic()
        with self._changing:
            self._busy.setdefault(guest, _Busy(now, now)).heard = now

    def heard(self, guest: object) -> None:
        """A guest came back with a statement, and may come with more."""
        with self._changing:
            if guest in self._busy:
                self._busy[guest].heard = monotonic()

    def idle(self, guest: object) -> None:
        """A guest has done all that it could, and waits."""
        with self._changing:
            self._busy.pop(guest, None)
        self._threads.wake()

    def wait(self) -> bool:
        """Wait for guests that are at work; whether there is news of any."""
        while (ends := self._patience_ends()) is not None:
            if self._threads.rest(max(0.0, ends - monotonic())):
                return True
            self._give_up(monotonic())
        return False

    def _patience_ends(self) -> float | None:
        with self._changing:
            return min((busy.patience_ends for busy in self._busy.values()), default=None)

    def _give_up(self, now: float) -> None:
        """Wait no longer for those who take long."""
        with self._changing:
            self._busy = {guest: busy for guest, busy in self._busy.items() if busy.patience_ends > now}
