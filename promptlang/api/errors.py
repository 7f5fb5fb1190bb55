"""What a caller wrote that no answer can have."""


class AnnotationError(TypeError):
    """An annotation that is no type of an answer; `str()` says which part of it, and what to write instead."""


class MarkError(ValueError):
    """A mark for `Annotated` that says nothing sensible; `str()` says what to change."""


class OptionsError(ValueError):
    """Options that nothing can be selected from; `str()` says what to change."""
