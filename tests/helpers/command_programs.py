"""Programs that commands run in tests."""

ASK = """
program ask(question: str, times: int = 1, tags: list[str] = []) -> str:
    user: "${question} ${tags}"
    assistant: answer = gen(max_tokens=4)
    return "${question}:${times}"
"""
FAILS = """
program fails(text: str) -> int:
    fork 2 as tries:
        user: "${text}"
        part = len(text) // (len(text) - 3)
    return tries[0].part
"""
