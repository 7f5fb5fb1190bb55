## What others import.

const MOTTO = "Keep it short."


record Point:
    x: int
    y: float in 0..1


fragment close():
    assistant: "Hello."


program shout(text: str) -> str:
    return text.upper()
