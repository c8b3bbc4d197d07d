"""Suggestions for a name that was not found."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """The known names most like `name`, best first, ignoring case; empty if none is close."""
    by_folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    return [by_folded[match] for match in get_close_matches(name.casefold(), by_folded, n=limit, cutoff=0.5)]
