"""Reads a Hugging Face `config.json` key by key and remembers which keys were accounted for."""

from collections.abc import Iterable
from typing import Any, TypeVar

from schedc.spec.importers.keys import INEXPRESSIBLE_KEYS, OTHER_FAMILIES_KEYS, SILENT_KEYS

T = TypeVar("T", int, float, bool, str)
_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


class Config:
    """`data` with a ledger: a key is read, ruled out or ignored by name, else `account` refuses it.

    Nothing here raises for a bad value; faults are gathered in `faults`, and a stand-in value is returned.
    """

    def __init__(self, data: dict[str, Any], source: str, prefix: str = "") -> None:
        self.data = data
        self.source = source
        self.prefix = prefix
        self.faults: list[str] = []
        self.left_out: list[str] = []
        self._accounted: set[str] = set()
        self._parts: list[Config] = []

    def refuse(self, key: str, why: str) -> None:
        self._accounted.add(key)
        self.faults.append(f"{self.prefix}{key}: {why}")

    def leave_out(self, key: str, why: str) -> None:
        """A key whose feature the spec does without, and may: the import says so."""
        self._accounted.add(key)
        self.left_out.append(f"{self.prefix}{key}: left out: {why}")

    def required(self, key: str, kind: type[T]) -> T:
        value = self.optional(key, kind)
        if value is None:
            if self.data.get(key) is None:
                self.refuse(key, f"missing; it must be {_NAMES[kind]}")
            return kind(1)
        return value

    def default(self, key: str, kind: type[T], default: T) -> T:
        """`default` is the family's own, for configs that leave the key out."""
        value = self.optional(key, kind)
        return default if value is None else value

    def nullable(self, key: str, kind: type[T], default: T) -> T | None:
        """`default` is the family's own, for an absent key; an explicit null switches the feature off."""
        return self.optional(key, kind) if key in self.data else default

    def optional(self, key: str, kind: type[T]) -> T | None:
        self._accounted.add(key)
        value = self.data.get(key)
        if value is None:
            return None
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            self.refuse(key, f"{value!r} is not {_NAMES[kind]}")
            return None
        return value

    def raw(self, key: str) -> Any:
        self._accounted.add(key)
        return self.data.get(key)

    def part(self, key: str) -> "Config | None":
        """The mapping under `key`, whose keys are accounted for like this one's; None if there is none."""
        value = self.raw(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.refuse(key, f"{value!r} is not a mapping of keys")
            value = {}
        own = Config(value, self.source, prefix=f"{self.prefix}{key}.")
        own.faults, own.left_out = self.faults, self.left_out
        self._parts.append(own)
        return own

    def must_be(self, key: str, allowed: Iterable[Any], why: str) -> None:
        """Nothing but an absent key, null or one of the `allowed` values has a meaning we know."""
        value = self.raw(key)
        if value is not None and value not in list(allowed):
            self.refuse(key, f"{value!r}: {why}")

    def ignore(self, *keys: str) -> None:
        """Keys that change nothing about a decode step of this family."""
        self._accounted.update(keys)

    def only_architectures(self, *endings: str) -> None:
        """Classes with another ending do other things than generate text."""
        architectures = self.raw("architectures") or []
        for architecture in architectures if isinstance(architectures, list) else [architectures]:
            if not str(architecture).endswith(endings):
                self.refuse("architectures", f"{architecture}: only {' and '.join(endings)} models generate text")

    def account(self) -> None:
        """Refuses each key nobody accounted for, here and in the parts."""
        for part in self._parts:
            part.account()
        for key, value in self.data.items():
            if key in self._accounted or key in SILENT_KEYS:
                continue
            why = INEXPRESSIBLE_KEYS.get(key) or OTHER_FAMILIES_KEYS.get(key)
            if why is not None:
                if means_something(value):
                    self.refuse(key, why)
            else:
                self.refuse(key, "unknown key, so what it asks for is unknown too")


def means_something(value: Any) -> bool:
    """Whether a key of a feature switches it on: null, false, 0 and empty collections do not."""
    return value not in (None, False, 0, [], {}, "")
