"""The constants of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf

from schedc.cost.links import Network
from schedc.cost.operations import CycleTable
from schedc.target.target import Target


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

    @classmethod
    def of(cls, target: Target) -> Machine:
        cost, table = target.cost, CycleTable.on(target)
        return cls(
            clock_ghz=cost.clock_mhz / 1000.0,
            bytes_per_ns=cost.hbm_stream_gb_s,
            descriptor_ns=cost.dma_descriptor_ns,
            read_latency_ns=cost.dma_hbm_to_vmem_ns,
            write_latency_ns=cost.dma_vmem_to_hbm_ns,
            in_flight=table.file.transfers_in_flight.value,
            table=table,
            network=Network.of(target.chip),
        )

    def without_work(self) -> Machine:
        """Bandwidth and instructions for nothing: what is left is latency."""
        return replace(self, clock_ghz=inf, bytes_per_ns=inf, descriptor_ns=0.0, network=self.network.without_limits())
