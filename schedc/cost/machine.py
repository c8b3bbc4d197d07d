"""The constants of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol

from schedc.cost.links import Network
from schedc.cost.operations import CycleTable
from schedc.cost.prices import TABLE, Prices, table_prices
from schedc.ir.program import Program
from schedc.target.target import Target


class Pricing(Protocol):
    """Cycles from elsewhere than the table, such as a profile; the table stands in for what it does not know."""

    @property
    def source(self) -> str: ...

    def priced(self, program: Program, table: CycleTable) -> Prices: ...


@dataclass(frozen=True)
class Machine:
    """The constants of a simulation; `replace(machine, clock_ghz=1.6)` tries others."""

    clock_ghz: float
    bytes_per_ns: float
    descriptor_ns: float
    read_latency_ns: float
    """HBM to VMEM."""
    write_latency_ns: float
    """VMEM to HBM."""
    in_flight: int
    """Transfers that share the HBM at a time."""
    table: CycleTable
    network: Network = field(default_factory=Network)
    skew_ns: float = 0.0
    """How late other devices are: everything from them comes so much later, in every exchange anew."""
    pricing: Pricing | None = None

    @classmethod
    def of(cls, target: Target, pricing: Pricing | None = None) -> Machine:
        cost, table = target.cost, CycleTable.on(target)
        return cls(
            clock_ghz=cost.clock_mhz / 1000.0,
            bytes_per_ns=cost.hbm_stream_gb_s,
            descriptor_ns=cost.dma_descriptor_ns,
            read_latency_ns=cost.dma_hbm_to_vmem_ns,
            write_latency_ns=cost.dma_vmem_to_hbm_ns,
            in_flight=cost.hbm_in_flight or table.file.transfers_in_flight.value,
            table=table,
            network=Network.of(target),
            skew_ns=(cost.exchange_skew_us or 0.0) * 1000.0,
            pricing=pricing,
        )

    @property
    def priced_by(self) -> str:
        """Who gives the cycles of operations, for a person."""
        return TABLE if self.pricing is None else self.pricing.source

    def priced(self, program: Program) -> Prices:
        """Cycles of every operation of the program."""
        if self.pricing is None:
            return table_prices(program, self.table)
        return self.pricing.priced(program, self.table)

    def without_work(self) -> Machine:
        """Bandwidth and instructions for nothing: what is left is latency."""
        return replace(self, clock_ghz=inf, bytes_per_ns=inf, descriptor_ns=0.0, network=self.network.without_limits())
