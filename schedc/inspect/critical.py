"""The critical path of a simulated step: backwards from its end, what the core did or waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from schedc.inspect.history import History, Waited


@dataclass(frozen=True, slots=True)
class Link:
    """A piece of the path from `began` to `ended` (ns): the core at work, a transfer, or a barrier."""

    kind: Literal["core", "transfer", "barrier"]
    began: float
    ended: float
    transfer: int | None = None


def critical_path(history: History) -> tuple[Link, ...]:
    """From 0 to the end of the step without a gap, in order of time.

    The core's work is on the path until it was held up; then what it was held up by is, from its start on, which the
    core issued: a transfer that came last of what a wait took. Earlier transfers in whose shadow it came are not named.
    """
    blocked = [wait for wait in history.waits if wait.blocked]
    path: list[Link] = []
    at, index = history.timeline.step_ns, len(blocked) - 1
    while at > 0.0:
        while index >= 0 and blocked[index].ended > at:
            index -= 1
        if index < 0:
            path.append(Link("core", 0.0, at))
            break
        wait = blocked[index]
        if wait.ended < at:
            path.append(Link("core", wait.ended, at))
        last = _last(history, wait)
        if last is None:
            path.append(Link("barrier", wait.reached, wait.ended))
            at = wait.reached
        else:
            began = min(history.transfers[last].issued, wait.reached)
            path.append(Link("transfer", began, wait.ended, last))
            at = began
        index -= 1
    return tuple(reversed(path))


def _last(history: History, wait: Waited) -> int | None:
    """The transfer that ended the wait."""
    return max(wait.took, key=lambda index: history.transfers[index].ended, default=None)
