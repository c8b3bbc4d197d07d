"""A mapping that is made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Lazy(Mapping[str, Value], Generic[Value]):
    make: Callable[[], Mapping[str, Value]]

    @cached_property
    def made(self) -> Mapping[str, Value]:
        return self.make()

    def __getitem__(self, key: str) -> Value:
        return self.made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)
