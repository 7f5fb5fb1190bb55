fragment brief():
    "Be brief."
