"""From a model's name to logits: loading, weights and how they are laid out, the passes through them.

May import: runtime.cache, runtime.text, kernels.
"""
