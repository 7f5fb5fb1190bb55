"""For benchmarks and tests alone: other caches and the way to compare them on workloads without a model.

May import: runtime.cache.
"""
