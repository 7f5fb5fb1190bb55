"""Which text is legal: the language's own grammar, and the constraints on what a model may write."""
