"""The errors a user of schedc meets, with the exit code the command gives for each."""


class SchedcError(Exception):
    """Base of every error that is shown to the user as its message, without a traceback."""

    exit_code = 1


class UserError(SchedcError):
    """Bad usage or bad input: the user changes a file or an argument."""

    exit_code = 2


class CheckFailed(SchedcError):  # noqa: N818 -- an answer, not an error
    """A check said no: the input was well-formed, the answer is negative."""

    exit_code = 1


class SpecError(UserError):
    """A model spec cannot be used. `problems` has one line a fault, all faults at once."""

    def __init__(self, source: str, problems: list[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__("\n".join([f"{source}:", *(f"  {line}" for line in problems)]))


class ConfigError(UserError):
    """A model config says something the spec cannot express. `problems` has one line a key."""

    def __init__(self, source: str, problems: list[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__("\n".join([f"{source}: cannot be expressed as a model spec:", *(f"  {p}" for p in problems)]))


class TargetError(UserError):
    """A target string or a target file cannot be used."""
