"""An exchange as remote starts and waits: one inbox for every peer, one outbox for all of them."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.ir.expr import Const, Rank, xor
from schedc.ir.program import ROW_BYTES, Buffer, Op, Operand, Region, RemoteStart, Semaphore, SemaphoreRef, Wait
from schedc.published.form import Exchange


@dataclass(frozen=True)
class ExchangeOps:
    """`rows` of 512 bytes to every peer."""

    name: str
    exchange: Exchange
    rows: int

    @classmethod
    def of(cls, name: str, exchange: Exchange, step_rows: int) -> ExchangeOps:
        return cls(name, exchange, -(-exchange.bytes_per_row * step_rows // ROW_BYTES))

    @property
    def outbox(self) -> Region:
        return Region(f"{self.name}.out", self.rows)

    @property
    def inbox(self) -> Region:
        return Region(f"{self.name}.in", self.rows * len(self.exchange.masks))

    def buffers(self, pool: str) -> tuple[Buffer, ...]:
        return tuple(Buffer(region.storage, pool, -(-region.rows // 8) * 8) for region in (self.outbox, self.inbox))

    def semaphores(self) -> tuple[Semaphore, ...]:
        return (Semaphore(f"{self.name}.sent"), Semaphore(f"{self.name}.arrived"))

    def written(self) -> Operand:
        return Operand(self.outbox.storage, "write", self.outbox)

    def read(self) -> Operand:
        return Operand(self.inbox.storage, "read", self.inbox)

    def send(self) -> tuple[Op, ...]:
        """Rank r sends to rank r ^ mask, into the place that the mask has: so nobody's places meet."""
        return tuple(
            RemoteStart(
                self.outbox,
                Region(self.inbox.storage, self.rows, Const(place * self.rows)),
                xor(Rank(), Const(mask)),
                SemaphoreRef(f"{self.name}.sent"),
                SemaphoreRef(f"{self.name}.arrived"),
            )
            for place, mask in enumerate(self.exchange.masks)
        )

    def receive(self) -> tuple[Op, ...]:
        """What has come from all; then the outbox is free too."""
        rows = self.inbox.rows
        return (Wait(SemaphoreRef(f"{self.name}.arrived"), rows), Wait(SemaphoreRef(f"{self.name}.sent"), rows))
