"""How many tokens a request may have: what the KV pool holds and the model takes."""

from dataclasses import dataclass

from promptlang.runtime.requests import GenerateTokens, Request, RequestError


@dataclass(frozen=True)
class Room:
    """Room for one sequence.

    Attributes:
        pool: tokens that the KV pool holds.
        context: tokens that the model takes.
    """

    pool: int
    context: int

    @property
    def limit(self) -> int:
        """The most tokens of a sequence."""
        return min(self.pool, self.context)

    def refuse_oversized(self, request: Request) -> None:
        """Refuse a request with more tokens, those of its answer included.

        Raises:
            RequestError: it has.
        """
        prompt = len(request.prompt.flush())
        if isinstance(request, GenerateTokens):
            more = request.max_tokens + bool(request.withdrawn)
        else:
            more = max(map(len, request.options))
        self.refuse(prompt + more, f"a prompt of {prompt} tokens and {more} tokens of answer")

    def refuse(self, tokens: int, what: str) -> None:
        """Refuse more tokens than there is room for.

        Args:
            tokens: how many.
            what: messages call them, in the plural.

        Raises:
            RequestError: there are more.
        """
        if tokens > self.pool:
            raise RequestError(f"{what} do not fit into the KV pool of {self.pool} tokens; give a larger --kv-budget")
        if tokens > self.context:
            raise RequestError(f"{what} are more than the model's context of {self.context} tokens")
