"""Devices that stand in the same relation to all others: a permutation of the devices that maps traces onto traces.

In a ring or an all-to-all exchange the devices can be turned round, in an exchange of pairs they can be mirrored: what
one sees of the others, each of them sees, with other numbers. A permutation is looked for by what a device posts: if
device a is to become b, then whom a posts to becomes whom b posts to in the same event; then it is checked on all
events of all devices. Permutations that were found make others, so n devices take about log n of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from schedc.ir.verify.devices.events import Event

Traces = Sequence[Sequence[Event]]
Permutation = tuple[int, ...]


@dataclass(frozen=True)
class _Course:
    """A trace in two lists: what happens, by number, and whom it is posted to."""

    events: list[int]
    devices: list[int]


def _courses(traces: Traces) -> list[_Course]:
    numbers: dict[Hashable, int] = {}

    def number(event: Event) -> int:
        posts = tuple((post.element, post.amount, post.arrival is None) for post in event.posts)
        return numbers.setdefault((event.kind, event.element, event.amount, posts), len(numbers))

    return [
        _Course([number(event) for event in trace], [post.device for event in trace for post in event.posts])
        for trace in traces
    ]


def symmetries(traces: Traces) -> list[Permutation | None]:
    """Per device, a permutation that maps device 0 to it and every trace to that of the device's image; None: none."""
    count = len(traces)
    identity = tuple(range(count))
    found: list[Permutation | None] = [identity, *[None] * (count - 1)]
    generators: list[Permutation] = []
    failed: set[int] = set()
    courses = _courses(traces)
    for device in range(1, count):
        if found[device] is None and device not in failed:
            made = _between(courses, 0, device)
            if made is None:
                failed.add(device)
                continue
            generators.append(made)
            _close(found, generators)
    return found


def _close(found: list[Permutation | None], generators: Sequence[Permutation]) -> None:
    """All devices that the generators take device 0 to."""
    ready = [permutation for permutation in found if permutation is not None]
    while ready:
        permutation = ready.pop()
        for generator in generators:
            image = generator[permutation[0]]
            if found[image] is None:
                found[image] = made = tuple(generator[device] for device in permutation)
                ready.append(made)


def _between(courses: Sequence[_Course], first: int, image: int) -> Permutation | None:
    """A permutation of the devices that maps `first` to `image` and keeps all traces, if posts lead to one."""
    to = {first: image}
    ready = [first]
    while ready:
        device = ready.pop()
        mine, theirs = courses[device], courses[to[device]]
        if mine.events != theirs.events:
            return None
        for posted, mapped in zip(mine.devices, theirs.devices, strict=True):
            if posted not in to:
                to[posted] = mapped
                ready.append(posted)
    others = range(len(courses))
    if sorted(to) != list(others) or sorted(to.values()) != list(others):
        return None
    permutation = tuple(to[device] for device in others)
    same = all(_maps(course, courses[permutation[device]], permutation) for device, course in enumerate(courses))
    return permutation if same else None


def _maps(course: _Course, image: _Course, permutation: Permutation) -> bool:
    """Whether the image is the course, with every device that it posts to replaced."""
    return course.events == image.events and [permutation[device] for device in course.devices] == image.devices
