"""Random numbers that depend on who asks, never on when: one stream for each place in a run."""

import hashlib


class RandomStream:
    """Uniform numbers, a function of the path and the step alone.

    Counter-based: nothing is consumed, so the same step gives the same number however often, in whatever
    order and beside whatever else it is asked for.

    Args:
        seed: the run's seed.
        path: where in the run: row, branch path, call, ...
    """

    def __init__(self, seed: int, *path: int | str) -> None:
        self._path = (seed, *path)
        # repr keeps ("ab", "c") apart from ("a", "bc"), and 1 from "1".
        self._key = hashlib.blake2b(repr(self._path).encode(), digest_size=32).digest()

    def child(self, *path: int | str) -> "RandomStream":
        """The stream of a place below this one; `RandomStream(s, a).child(b)` is `RandomStream(s, a, b)`."""
        return RandomStream(*self._path, *path)  # type: ignore[arg-type]

    def bits(self, step: int) -> int:
        """The 64 random bits of `step`."""
        digest = hashlib.blake2b(step.to_bytes(8, "little"), key=self._key, digest_size=8).digest()
        return int.from_bytes(digest, "little")

    def uniform(self, step: int) -> float:
        """The number for `step`, uniform in [0, 1), with 53 random bits."""
        return (self.bits(step) >> 11) * 2.0**-53
