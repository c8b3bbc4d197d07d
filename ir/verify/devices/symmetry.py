"""Devices that stand in the same relation to all others: a permutation of the devices that maps traces onto traces.

In a ring or an all-to-all exchange the devices can be turned round, in an exchange of pairs they can be mirrored: what
one sees of the others, each of them sees, with other numbers. A permutation is looked for by what a device posts: if
device a is to become b, then whom a posts to becomes whom b posts to in the same event; then it is checked on all
events of all devices. Permutations that were found make others, so n devices take about log n of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from schedc.ir.verify.devices.events import Event

Traces = Sequence[Sequence[Event]]
Permutation = tuple[int, ...]


def symmetries(traces: Traces) -> list[Permutation | None]:
    """Per device, a permutation that maps device 0 to it and every trace to that of the device's image; None: none."""
    count = len(traces)
    identity = tuple(range(count))
    found: list[Permutation | None] = [identity, *[None] * (count - 1)]
    generators: list[Permutation] = []
    failed: set[int] = set()
    for device in range(1, count):
        if found[device] is None and device not in failed:
            made = _between(traces, 0, device)
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


def _between(traces: Traces, first: int, image: int) -> Permutation | None:
    """A permutation of the devices that maps `first` to `image` and keeps all traces, if posts lead to one."""
    to = {first: image}
    ready = [first]
    while ready:
        device = ready.pop()
        for mine, theirs in zip(traces[device], traces[to[device]], strict=False):
            if len(mine.posts) != len(theirs.posts):
                return None
            for post, mapped in zip(mine.posts, theirs.posts, strict=True):
                if post.device not in to:
                    to[post.device] = mapped.device
                    ready.append(post.device)
    others = range(len(traces))
    if sorted(to) != list(others) or sorted(to.values()) != list(others):
        return None
    permutation = tuple(to[device] for device in others)
    same = all(_maps(trace, traces[permutation[device]], permutation) for device, trace in enumerate(traces))
    return permutation if same else None


def _maps(trace: Sequence[Event], image: Sequence[Event], permutation: Permutation) -> bool:
    """Whether the image is the trace, with every device that it posts to replaced."""

    def seen(event: Event) -> tuple[object, ...]:
        return event.kind, event.element, event.amount, len(event.posts)

    return len(trace) == len(image) and all(
        seen(mine) == seen(theirs)
        and all(
            (permutation[a.device], a.element, a.amount, a.arrival is None)
            == (b.device, b.element, b.amount, b.arrival is None)
            for a, b in zip(mine.posts, theirs.posts, strict=True)
        )
        for mine, theirs in zip(trace, image, strict=True)
    )
