program continue_text():
    """
    Once upon a time
    there was
    """
    animal = select(" cat", " dog")
    "who liked"
    thing = gen(max_tokens=5, heal=false)
