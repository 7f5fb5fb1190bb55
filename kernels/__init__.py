"""Attention over a tree of shared prefixes: kernels, each beside a plain torch reference."""
