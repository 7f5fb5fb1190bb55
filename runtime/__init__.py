"""Who answers for a model: `backend.py` is what may be asked in texts, `engine.py` does it in tokens, one pass a step.

May import: runtime.cache, runtime.models, runtime.text, kernels, grammar.
"""
