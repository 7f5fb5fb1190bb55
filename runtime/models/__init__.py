"""From a model's name to logits: loading, weights and how they are laid out, the passes through them.

May import: cache's pool, text's tokenizer, the packed batch, kernels.
"""
