"""Where a search is: what another process needs to go on."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from schedc.errors import UserError
from schedc.schedule.plan import Plan
from schedc.schedule.plan_file import plan_from_dict, plan_to_dict


@dataclass(frozen=True)
class Member:
    """A plan of the population, its step by the fast simulation, and the number of the setting it is of."""

    plan: Plan
    step_ns: float
    setting: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {"plan": plan_to_dict(self.plan), "step_ns": self.step_ns, "setting": self.setting}

    @classmethod
    def from_dict(cls, data: Any) -> Member:
        return cls(plan_from_dict(data["plan"]), float(data["step_ns"]), int(data["setting"]))


@dataclass
class State:
    """`ends`: the best member at the end of each stage that is over. `carried`: the settings that the stage of other
    settings goes on with."""

    key: str
    round: int = 0
    simulated: int = 0
    members: list[Member] = field(default_factory=list)
    ends: list[Member] = field(default_factory=list)
    carried: list[int] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """All or nothing. Raises UserError if it cannot be written."""
        data = {**asdict(self), "members": _dicts(self.members), "ends": _dicts(self.ends)}
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            draft.write_text(json.dumps(data), encoding="utf-8")
            draft.replace(path)
        except OSError as error:
            raise UserError(f"{path}: the state cannot be written: {error.strerror or error}") from None

    @classmethod
    def read(cls, path: Path, key: str) -> State:
        """Raises UserError for a file of another search."""
        try:
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            members, ends = ([Member.from_dict(one) for one in data[name]] for name in ("members", "ends"))
            carried = [int(number) for number in data["carried"]]
            state = cls(data["key"], int(data["round"]), int(data["simulated"]), members, ends, carried)
        except OSError as error:
            raise UserError(f"{path}: the state cannot be read: {error.strerror or error}") from None
        except (ValueError, KeyError, TypeError, UserError) as error:
            raise UserError(f"{path} is not the state of a search ({error}); remove it, or name another file") from None
        if state.key != key:
            raise UserError(f"{path} is the state of another search ({state.key}, not {key}); name another file")
        return state


def _dicts(members: Sequence[Member]) -> list[dict[str, Any]]:
    return [member.to_dict() for member in members]
