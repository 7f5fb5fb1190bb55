"""What a run will cost: `estimate.py` rehearses a program on the engine of `rehearsal.py`, whose model only guesses.

May import: interpreter, compiler, values, runtime, runtime.cache, runtime.models, runtime.text, grammar.
"""
