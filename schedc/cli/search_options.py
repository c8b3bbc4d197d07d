"""The options that say how `schedc explore` searches."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from schedc.errors import UserError

_PANEL = "Search"

DIMENSIONS = ("wire", "placement")
"""What a search changes only if it is asked to."""


def _option(*names: str, help: str, **settings: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **settings)


@dataclass(frozen=True)
class SearchOptions:
    """How long, from what random numbers, over what, and where."""

    executor: Annotated[
        str, _option("--executor", help="local, or a running cluster: dask://host:port, ray://host:port.")
    ] = "local"
    jobs: Annotated[int, _option("--jobs", help="Processes on this machine.", min=1)] = 1
    draws: Annotated[int, _option("--seed", help="Of the search.")] = 0
    rounds: Annotated[int, _option("--rounds", help="Of the search, eight tasks each.", min=0)] = 20
    steps: Annotated[int, _option("--steps", help="Changes that each task of the search tries.", min=0)] = 20_000
    seconds: Annotated[
        float | None, _option("--seconds", help="End the search after the round in which they are over.", min=0)
    ] = None
    state: Annotated[
        Path | None, _option("--state", help="Keep the search here after every round, and go on from it.")
    ] = None
    vary: Annotated[
        str | None,
        _option(
            "--vary",
            metavar="wire,placement",
            help="Also try other formats of what devices send, which changes numbers, or other placements, or both.",
        ),
    ] = None
    prove: Annotated[bool, _option("--prove/--no-prove", help="Prove the plan that is found.")] = True

    def varied(self) -> frozenset[str]:
        """Raises UserError for what is no dimension."""
        found = frozenset(part.strip() for part in (self.vary or "").split(",")) - {""}
        if unknown := sorted(found - set(DIMENSIONS)):
            raise UserError(f"--vary {', '.join(unknown)}: there are {', '.join(DIMENSIONS)}")
        return found
