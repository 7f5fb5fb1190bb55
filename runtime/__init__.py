"""The engine: prompt state, radix tree, KV pool, scheduler, batches, model, sampler."""
