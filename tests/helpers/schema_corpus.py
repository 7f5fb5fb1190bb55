"""Fifty JSON Schemas as programs would ask for them."""

from typing import Any

Json = dict[str, Any]

FLAG: Json = {"type": "boolean"}
NOTHING: Json = {"type": "null"}


def text(longest: int = 12) -> Json:
    return {"type": "string", "maxLength": longest}


def spelt(pattern: str) -> Json:
    return {"type": "string", "pattern": f"^{pattern}$"}


def whole(low: int = 0, high: int = 100) -> Json:
    return {"type": "integer", "minimum": low, "maximum": high}


def number(low: float = 0, high: float = 1) -> Json:
    return {"type": "number", "minimum": low, "maximum": high}


def one_of(*values: Any) -> Json:
    return {"enum": list(values)}


def some(item: Json, least: int = 1, most: int = 2) -> Json:
    return {"type": "array", "items": item, "minItems": least, "maxItems": most}


def either(*options: Json) -> Json:
    return {"anyOf": list(options)}


def record(**fields: Json) -> Json:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def loose(required: list[str], **fields: Json) -> Json:
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


POINT = record(x=whole(-9, 9), y=whole(-9, 9))
MONEY = record(amount=number(0, 999), currency=one_of("EUR", "USD", "JPY"))
PERSON = record(name=text(), age=whole(0, 120))

SCHEMAS: list[Json] = [
    record(team=one_of("billing", "network", "account"), urgency=whole(1, 5), body=text()),
    record(sentiment=one_of("positive", "negative", "neutral"), confidence=number()),
    record(name=text(), age=whole(0, 120), is_member=FLAG),
    record(title=text(), year=whole(1900, 2030), genres=some(one_of("drama", "comedy", "horror"))),
    record(origin=POINT, target=POINT),
    record(price=MONEY, in_stock=FLAG),
    record(answer=one_of("yes", "no", "unsure"), because=text()),
    record(order=spelt("[A-Z]{2}-[0-9]{4}"), items=some(record(sku=spelt("[0-9]{3}"), count=whole(1, 9)))),
    record(date=spelt("20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-8])"), event=text()),
    record(time=spelt("([01][0-9]|2[0-3]):[0-5][0-9]"), label=text(6)),
    record(host=spelt("[a-z]{3,8}\\.(com|org)"), port=whole(1, 65535), secure=FLAG),
    record(command=one_of("start", "stop", "restart"), service=text(8), force=FLAG),
    record(city=text(), country=spelt("[A-Z]{2}"), population=whole(0, 40_000_000)),
    record(title=text(), author=PERSON),
    record(people=some(PERSON)),
    record(shape=either(record(kind=one_of("circle"), radius=whole()), record(kind=one_of("box"), side=whole()))),
    record(value=either(whole(), NOTHING), unit=one_of("kg", "g")),
    record(phone=spelt("\\+[0-9]{6,9}"), type=one_of("home", "work")),
    record(color=spelt("#[0-9a-f]{6}")),
    record(version=spelt("[0-9]\\.[0-9]\\.[0-9]"), stable=FLAG),
    loose(["id"], id=whole(), note=text(8)),
    loose([], first=text(5), last=text(5)),
    loose(["status"], status=one_of("open", "closed"), assignee=text(8), priority=whole(1, 3)),
    some(whole(0, 9), 2, 4),
    some(text(6)),
    some(some(whole(0, 1), 2, 2), 2, 2),
    some(record(word=text(8), tag=one_of("noun", "verb", "adjective"))),
    one_of("red", "green", "blue"),
    one_of(1, 2, 3, "many"),
    whole(1, 5),
    number(-1, 1),
    FLAG,
    text(10),
    either(FLAG, whole(0, 9)),
    either(record(ok=one_of(True), value=whole()), record(ok=one_of(False), error=text())),
    record(a=record(b=record(c=whole(0, 9)))),
    record(matrix=some(some(whole(0, 9), 2, 2), 2, 2), name=text(4)),
    record(query=text(), filters=record(language=one_of("en", "de", "fr"), limit=whole(1, 50))),
    record(tool=one_of("search"), arguments=record(query=text())),
    record(tool=one_of("calculator", "clock"), argument=either(text(8), NOTHING)),
    record(thought=text(16), action=one_of("look", "go", "take"), done=FLAG),
    record(score=whole(1, 10), reasons=some(text(10))),
    record(ingredients=some(record(name=text(8), grams=whole(1, 999))), minutes=whole(1, 240)),
    record(question=text(), options=some(text(6), 2, 2), correct=whole(0, 1)),
    record(temperature=number(-40, 50), wind=whole(0, 150), sky=one_of("clear", "cloudy", "rain")),
    record(**{"first name": text(6), "größe": whole(100, 220), 'quote"d': FLAG}),
    record(plan=some(record(step=whole(1, 9), what=text(10)))),
    record(balance=number(-1000, 1000), history=some(number(-100, 100))),
    record(ratings=record(taste=whole(1, 5), looks=whole(1, 5), price=whole(1, 5))),
    record(empty=record(), constant=one_of("always the same long text"), last=FLAG),
]
