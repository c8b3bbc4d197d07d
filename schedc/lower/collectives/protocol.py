"""What a collective is: what is exchanged, and the operations that do it, in parts between which other work can stand.

    declarations().cleared   zeros before the devices meet, once
    start(source, slot)      round to the wire, first sends
    steps(slot)              one element a step: wait, combine, send on (none where one exchange is enough)
    finish(target, slot)     last wait, combine into the target
    settle(slot)             wait until all sends have been read

in that order, with any other operations between them. The same collective may occur any number of times, one after the
other; an occurrence may be cut into `pieces`, each with these parts, all settled before the next occurrence starts.
`slot` is `parity · pieces + piece`, with the parity of the occurrence, 0 and 1 in turn (`occurrence_parity`). Then no
acknowledgement is needed: an occurrence ends on a device only when every member of its group has begun it, so a peer
that sends to a slot again, two occurrences on, does so after this device has begun the one between, and that is after
it has read the slot.

The barrier before the first remote operation is the caller's, at the start of the program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from schedc.errors import UserError
from schedc.ir.expr import Expr, add, mod, mul
from schedc.ir.program import Attribute, Op, Region
from schedc.lower.collectives.group import Group, Topology
from schedc.lower.graph import PER_WORD, Declarations, ceil_div, round_up
from schedc.weights.layout import WordDtype

Kind = Literal["all_reduce", "all_gather", "reduce_scatter", "exchange"]
KINDS: tuple[Kind, ...] = get_args(Kind)

EXCHANGE = "exchange"
"""The pool of what peers write. Its blocks lie at addresses that depend on the rank: in the pool of the activations the
compiler would have to assume that every activation might be one of them."""

SUBLANES = 8


@dataclass(frozen=True)
class Exchanged:
    """What a collective exchanges: regions of f32[rows, 128] in VMEM, words of `wire` between devices.

    all_reduce: `rows` to `rows`, the sum of all members', bit for bit the same on each.
    all_gather: `rows` to `size · rows`, in the order of the members.
    reduce_scatter: `rows`, as many equal parts as members, to the sum of this member's part.
    exchange: `rows` to the other's `rows`, in groups of two.
    """

    name: str
    kind: Kind
    group: Group
    topology: Topology
    rows: int
    wire: WordDtype = "f32"
    pool: str = EXCHANGE
    pieces: int = 1
    """`rows` are those of one piece."""
    height: int = 0
    used: int = 0
    """Of an all-reduce of panels of `height` rows, only the first `used` rows of each are sent and added; 0: all."""

    def __post_init__(self) -> None:
        problems = []
        if self.kind not in KINDS:
            problems.append(f"there is no kind {self.kind!r}, only {', '.join(KINDS)}")
        if self.wire not in PER_WORD:
            problems.append(f"there is no wire dtype {self.wire!r}, only {', '.join(PER_WORD)}")
        parts = self.group.size if self.kind == "reduce_scatter" else 1
        if self.rows < 1 or self.rows % (SUBLANES * parts):
            problems.append(f"{self.rows} rows are not a positive multiple of {SUBLANES * parts}")
        if self.kind == "exchange" and self.group.size != 2:
            problems.append(f"an exchange is between two devices, the group has {self.group.size}")
        if self.height and (self.kind != "all_reduce" or self.rows % self.height or not 0 < self.used < self.height):
            problems.append(f"{self.used} of {self.height} rows: only some rows of whole panels can be all-reduced")
        if problems:
            raise UserError(f"collective {self.name}: {'; '.join(problems)}")

    @property
    def target_rows(self) -> int:
        match self.kind:
            case "all_gather":
                return self.rows * self.group.size
            case "reduce_scatter":
                return self.rows // self.group.size
            case _:
                return self.rows

    @property
    def part(self) -> int:
        """Word rows of a member's part of an all-reduce: whole panels if these are less than groups of eight."""
        return min(self._even_part, self._panel_part) if self.height else self._even_part

    @property
    def in_panels(self) -> bool:
        """Whether the parts are whole panels."""
        return self.height > 0 and self._panel_part < self._even_part

    @property
    def _even_part(self) -> int:
        return self.words(self.rows, self.group.size) // self.group.size

    @property
    def _panel_part(self) -> int:
        return ceil_div(ceil_div(self.rows // self.height, self.group.size) * self.used, PER_WORD[self.wire])

    @property
    def parts(self) -> dict[str, Attribute]:
        """What tells an operation on the caller's region the dtype of the wire, and which rows are sent."""
        parts: dict[str, Attribute] = {"wire": self.wire}
        return parts | ({"height": self.height, "used": self.used} if self.height else {})

    def stage_pool(self, stage: int) -> str:
        """Stages take turns in two pools: what one has received is added into the next, and with both in one pool the
        compiler would let each load wait for the stores before it (263 cycles for 37, for 4 blocks of 256 rows)."""
        return f"{self.pool}_{stage % 2}"

    def words(self, rows: int, blocks: int = 1) -> int:
        """Word rows of `rows` f32 rows on the wire, so many that they can be cut in `blocks` equal whole tiles."""
        per_word = PER_WORD[self.wire]
        if self.height:
            rows = self.used * round_up(rows // self.height, SUBLANES * per_word)
        return round_up(rows, SUBLANES * per_word * blocks) // per_word


class Collective(Protocol):
    @property
    def exchanged(self) -> Exchanged: ...
    def declarations(self) -> Declarations: ...
    def start(self, source: Region, slot: Expr) -> tuple[Op, ...]: ...
    def steps(self, slot: Expr) -> tuple[tuple[Op, ...], ...]: ...
    def finish(self, target: Region, slot: Expr) -> tuple[Op, ...]: ...
    def settle(self, slot: Expr) -> tuple[Op, ...]: ...


def complete(collective: Collective, target: Region, slot: Expr) -> tuple[Op, ...]:
    """All that is left after `start`, at once."""
    steps = (op for step in collective.steps(slot) for op in step)
    return (*steps, *collective.finish(target, slot), *collective.settle(slot))


def occurrence_parity(before: int, per_trip: int, index: int, trip: Expr | int) -> Expr:
    """Of the occurrence `index` of `per_trip` in iteration `trip` of a loop that comes after `before` occurrences."""
    return mod(add(mul(trip, per_trip % 2), (before + index) % 2), 2)
