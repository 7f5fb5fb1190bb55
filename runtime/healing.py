"""Token healing: where a text's last token could be longer, it is taken back and the answer begins by extending it.

A model has hardly ever seen the token of a lone space, of half a word, or of the `:` of a URL, before what should
follow: the tokenizer joins them.
"""

from promptlang.grammar.vocabulary import Vocabulary
from promptlang.runtime.prompt import TokenPrompt


def heal(prompt: TokenPrompt, vocabulary: Vocabulary) -> bytes:
    """Withdraw the prompt's last token where that helps.

    Only a token of the program's own text is taken back, never one of the template's or of a model's answer, and
    never the only one.

    Args:
        prompt: flushed; may lose its last token.
        vocabulary: the tokenizer's tokens.

    Returns:
        The withdrawn token's bytes, which the first generated token must extend; empty where nothing was withdrawn.
    """
    tokens = prompt.flush()
    if not prompt.ends_in_text or len(tokens) < 2:
        return b""
    head = vocabulary.token_bytes[tokens[-1]]
    if not _is_open(head) or not vocabulary.has_longer(head):
        return b""
    prompt.withdraw()
    return head


def _is_open(head: bytes) -> bool:
    """Whether text that ends so may go on in the same token. A line break ends what stands before it: prompts are laid
    out in lines, and an answer begins a new one."""
    try:
        return bool(head) and not head.decode().endswith("\n")
    except UnicodeDecodeError:
        return False
