"""The chosen experts: slices of an eighth of each on every device, streamed through slots of whole slices."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.ir.expr import Compare, Const, Counter, Element, Expr, add, mod, mul
from schedc.ir.program import (
    Array,
    Attribute,
    Buffer,
    Compute,
    Loop,
    Op,
    Region,
    Scalars,
    Semaphore,
    SemaphoreRef,
    Start,
    Wait,
    When,
)
from schedc.lower.graph import Declarations
from schedc.lower.parts import STREAM, WORK, compute
from schedc.published.muse_spark.prices import Prices
from schedc.published.muse_spark.tiles import LAYER
from schedc.published.muse_spark.variant import Variant

CHOSEN, MEMBERS, LATENT, SLICE = 8, 256, 4096, 512
EXPERT = "expert"
PARTS = ("gate_up", "gate_up_scales", "down", "down_scales")
ROWS = {"int4": (4096, 256, 2048, 128), "nvfp4": (4096, 512, 2048, 256)}
"""Of 512 bytes: 4-bit weights of [4096, 1024] and [512, 4096], f32 scales of 128 of them, or one byte of 16."""


@dataclass(frozen=True)
class Experts:
    """`out` is f32[8 experts · rows, 4096], this device's part of the sum, expert by expert."""

    variant: Variant
    prices: Prices

    @property
    def rows(self) -> tuple[int, ...]:
        return ROWS[self.variant.experts]

    @property
    def out_rows(self) -> int:
        return CHOSEN * self.variant.rows * LATENT // 128

    def declarations(self) -> Declarations:
        total = sum(self.rows)
        return Declarations(
            (
                Buffer("expert_slot", STREAM, total, self.variant.expert_slots),
                Buffer("expert_hidden", WORK, 64),
                Buffer("expert_activated", WORK, 32),
                Buffer("expert_parts", WORK, self.out_rows),
            ),
            (Array("experts", self.variant.layers * MEMBERS * total, "weight"),),
            (Scalars("chosen", CHOSEN, 0, MEMBERS - 1, "local"),),
            (Semaphore("gate_up", self.variant.expert_slots), Semaphore("down", self.variant.expert_slots)),
        )

    def first(self) -> tuple[Op, ...]:
        """As many as there are slots."""
        return tuple(op for e in range(min(CHOSEN, self.variant.expert_slots)) for op in self.start(Const(e)))

    def loop(self) -> tuple[Op, ...]:
        here: Expr = Counter(EXPERT)
        ahead, slot = add(here, self.variant.expert_slots), mod(here, self.variant.expert_slots)
        up, up_scales, down, down_scales = self.rows
        hidden, activated = Region("expert_hidden", 64), Region("expert_activated", 32)
        weights = Region("expert_slot", up + up_scales, slot=slot)
        below = Region("expert_slot", down + down_scales, Const(up + up_scales), slot)
        part = Region("expert_parts", self.out_rows // CHOSEN, mul(here, self.out_rows // CHOSEN))
        body: list[Op] = [
            Wait(SemaphoreRef("gate_up", slot), weights.rows),
            self._dot("gate_up", Region("expert_in", 256), weights, hidden, LATENT, 2 * SLICE // 128),
            compute("gated", {"y": hidden}, {"out": activated}, attributes=self._shape(), width=SLICE),
            Wait(SemaphoreRef("down", slot), below.rows),
            self._dot("down", activated, below, part, SLICE, LATENT // 128),
        ]
        if self.variant.expert_slots < CHOSEN:
            body.append(When((Compare("<", ahead, Const(CHOSEN)),), self.start(ahead)))
        return (Loop(EXPERT, Const(CHOSEN), tuple(body)),)

    def _shape(self) -> dict[str, Attribute]:
        return {"rows": self.variant.padded_rows, "dtype": "bf16", "activation": "silu"}

    def _dot(self, name: str, x: Region, w: Region, out: Region, depth: int, panels: int) -> Compute:
        measured = self.prices.expert_dot_ns(self.variant.experts, name, self.variant.rows)
        if measured is not None:
            return compute(
                "measured", {"x": x, "w": w}, {"out": out}, what=f"{name} {self.variant.experts}", ns=measured
            )
        sizes: dict[str, Attribute] = {"rows": self.variant.padded_rows, "depth": depth, "panels": panels}
        return compute("matmul", {"x": x, "w": w}, {"out": out}, attributes=sizes, dtype="int4")

    def start(self, expert: Expr) -> tuple[Op, ...]:
        slots = self.variant.expert_slots
        slot = mod(expert, slots) if not isinstance(expert, Const) else Const(expert.value % slots)
        matrix = mul(add(mul(Counter(LAYER), MEMBERS), Element("chosen", expert)), sum(self.rows))
        ops: list[Op] = []
        for number, (part, rows) in enumerate(zip(PARTS, self.rows, strict=True)):
            before = sum(self.rows[:number])
            semaphore = SemaphoreRef("gate_up" if part.startswith("gate_up") else "down", slot)
            source = Region("experts", rows, add(matrix, before))
            ops.append(Start(source, Region("expert_slot", rows, Const(before), slot), semaphore))
        return tuple(ops)
