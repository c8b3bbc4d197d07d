"""The errors of the backend."""

from schedc.errors import UserError


class EmitError(UserError):
    """A program cannot be emitted: what is wrong and where."""

    kind = "emit"
