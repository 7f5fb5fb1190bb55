# What `speculation.py` asks: answers that repeat what was said before, and some that don't.


program quote(text: str):
    user: "${text}\n\nCopy out the first two sentences of this text, word for word."
    assistant:
        answer = gen(max_tokens=96)
    return answer


program rewrite(text: str):
    user: "Write this text again, with Anna in place of Maria, and change nothing else:\n\n${text}"
    assistant:
        answer = gen(max_tokens=128)
    return answer


program row(name: str, city: str, year: int):
    user:
        """
        Write an SQL statement for each person.
        Person: Karl Fink, born in 1950, lives in Graz.
        INSERT INTO people (name, city, born) VALUES ('Karl Fink', 'Graz', 1950);
        Person: ${name}, born in ${year}, lives in ${city}.
        """
    assistant:
        answer = gen(max_tokens=48, stop=";")
    return answer


program story(subject: str):
    user: "Tell me something about ${subject}."
    assistant:
        answer = gen(max_tokens=96)
    return answer


program drawn(subject: str):
    user: "Tell me something about ${subject}."
    assistant:
        answer = gen(max_tokens=96, temperature=1.0)
    return answer
