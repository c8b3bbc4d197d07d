"""The errors a user of schedc meets, with the exit code the command gives for each."""

from collections.abc import Mapping, Sequence
from typing import Any


class SchedcError(Exception):
    """Base of every error that is shown to the user as its message, without a traceback.

    `problems` has each fault by itself. `details` is what `--json` says beside the error, such as a report.
    """

    exit_code = 1
    kind = "error"
    """What `--json` calls errors of this class."""

    def __init__(self, message: str, *, problems: Sequence[str] = (), details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.problems = tuple(problems) or (message,)
        self.details = dict(details or {})


class UserError(SchedcError):
    """Bad usage or bad input: the user changes a file or an argument."""

    exit_code = 2
    kind = "input"


class CheckFailed(SchedcError):  # noqa: N818 -- an answer, not an error
    """A check said no: the input was well-formed, the answer is negative."""

    exit_code = 1
    kind = "check"


class SpecError(UserError):
    """A model spec cannot be used. `problems` has one line a fault, all faults at once."""

    kind = "spec"

    def __init__(self, source: str, problems: list[str]) -> None:
        self.source = source
        super().__init__("\n".join([f"{source}:", *(f"  {line}" for line in problems)]), problems=problems)


class ConfigError(UserError):
    """A model config says something the spec cannot express. `problems` has one line a key."""

    kind = "config"

    def __init__(self, source: str, problems: list[str]) -> None:
        self.source = source
        problems = list(dict.fromkeys(problems))  # A key that is read in several places is named once.
        lines = [f"{source}: cannot be expressed as a model spec:", *(f"  {problem}" for problem in problems)]
        super().__init__("\n".join(lines), problems=problems)


class TargetError(UserError):
    """A target string or a target file cannot be used."""

    kind = "target"
