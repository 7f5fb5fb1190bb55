"""Text as it grows: whole characters, and the earliest stop string."""

from collections.abc import Sequence


class AnswerText:
    """The bytes of an answer, token by token.

    Holds back what may still become part of a stop string or a multi-byte character, so that a reader never sees
    either.

    Args:
        stops: stop strings; the match that is complete first wins, the longer of two that end together.
        withdrawn: bytes at the head that belong to the prompt's text (token healing), not to the answer.
        min_tokens: a stop string that begins in so many first tokens of the answer is text like any other.

    Attributes:
        anew: how many tokens, the first ones, only write withdrawn text anew.
        stopped_at: where the stop string begins, in bytes; None without one.
    """

    def __init__(self, stops: Sequence[str] = (), withdrawn: bytes = b"", min_tokens: int = 0) -> None:
        self._stops = [stop.encode() for stop in stops]
        self._longest = max(map(len, self._stops), default=0)
        self._withdrawn = len(withdrawn)
        self._min_tokens = min_tokens
        self._bytes = bytearray()
        self._ends: list[int] = []
        self._shown = self._withdrawn
        self._searched = 0
        self._unstoppable = self._withdrawn
        self.anew = 0
        self.stopped_at: int | None = None

    def push(self, piece: bytes) -> bool:
        """Append one token's bytes; True when a stop string is now complete."""
        self._bytes += piece
        self._ends.append(len(self._bytes))
        if len(self._bytes) <= self._withdrawn:
            self.anew += 1
        elif self.tokens <= self._min_tokens:
            self._unstoppable = len(self._bytes)
        self.stopped_at = self._find_stop()
        return self.stopped_at is not None

    @property
    def tokens(self) -> int:
        """How many tokens of the answer there are; those that only write withdrawn text anew are none."""
        return len(self._ends) - self.anew

    def _find_stop(self) -> int | None:
        start = max(self._unstoppable, self._searched - self._longest + 1)
        self._searched = len(self._bytes)
        found = [(at + len(stop), at) for stop in self._stops if (at := self._bytes.find(stop, start)) >= 0]
        return min(found)[1] if found else None

    @property
    def text(self) -> str:
        """The answer without its stop string, and without a character that its end has cut."""
        return bytes(self._bytes[self._withdrawn : self._final_end()]).decode(errors="replace")

    def show(self, final: bool = False) -> str:
        """The text that has become safe to show since the last call."""
        end = self._safe_end() if not final else self._final_end()
        if end <= self._shown:
            return ""
        text = bytes(self._bytes[self._shown : end]).decode(errors="replace")
        self._shown = end
        return text

    def _final_end(self) -> int:
        if self.stopped_at is not None:
            return self.stopped_at
        return len(self._bytes) - _incomplete_character(self._bytes)

    def _safe_end(self) -> int:
        if self.stopped_at is not None:
            return self.stopped_at
        end = len(self._bytes) - max(map(self._beginning, self._stops), default=0)
        return end - _incomplete_character(self._bytes[:end])

    def _beginning(self, stop: bytes) -> int:
        """How many bytes at the end, none of them shown yet, begin a stop string."""
        longest = min(len(stop) - 1, len(self._bytes) - max(self._shown, self._unstoppable))
        return next((length for length in range(longest, 0, -1) if self._bytes.endswith(stop[:length])), 0)

    def kept_tokens(self) -> tuple[int, bytes]:
        """Where the answer ends: how many tokens stay whole, and the bytes between them and a stop string, which begin
        and end with whole characters."""
        last = self._final_end()
        whole = sum(1 for end in self._ends if end <= last)
        while whole and _goes_on_with_character(self._bytes, self._ends[whole - 1]):
            whole -= 1
        start = self._ends[whole - 1] if whole else 0
        return whole, bytes(self._bytes[start:last])


def _goes_on_with_character(data: bytearray, at: int) -> bool:
    """Whether the byte at `at` is a later one of a UTF-8 character."""
    return at < len(data) and data[at] & 0b1100_0000 == 0b1000_0000


def _incomplete_character(data: bytes | bytearray) -> int:
    """How many bytes at the end begin a UTF-8 character that is not whole yet."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0b1100_0000 == 0b1000_0000:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if back < needed else 0
    return 0
