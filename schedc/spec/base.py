"""The base of every part of a spec: frozen, strict, no unknown keys, and all its faults reported at once."""

from collections.abc import Iterator
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from schedc.names import nearest

Problem = tuple[str, str]
"""(field of this part, what is wrong with it); the field is "" for the part as a whole."""


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def problems(self) -> Iterator[Problem]:
        """Faults between fields that are each well-formed."""
        yield from ()

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = [key for key in data if key not in cls.model_fields]
            _raise([(str(key), _unknown_key(str(key), list(cls.model_fields))) for key in unknown], "unknown_keys")
        return data

    @model_validator(mode="after")
    def _refuse_problems(self) -> Self:
        _raise(list(self.problems()), "part_problems")
        return self


def _unknown_key(key: str, valid: list[str]) -> str:
    close = nearest(key, valid)
    if close:
        return f"unknown key; nearest: {', '.join(close)}"
    return f"unknown key; valid keys: {', '.join(valid)}"


def _raise(problems: list[Problem], error_type: str) -> None:
    if problems:
        text = "; ".join(f"{field}: {message}" if field else message for field, message in problems)
        raise PydanticCustomError(error_type, "{text}", {"text": text, "problems": problems})
