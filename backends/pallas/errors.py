"""The errors of the backend."""


class EmitError(Exception):
    """A program cannot be emitted: what is wrong and where."""
