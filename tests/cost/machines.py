"""A machine with round numbers, for timelines worked by hand."""

from schedc.cost.figures import OperationsFile
from schedc.cost.links import Network
from schedc.cost.machine import Machine
from schedc.cost.operations import CycleTable
from schedc.target.target import parse_target

ISSUE = {
    "start": 10.0,
    "remote_start": 10.0,
    "wait": 5.0,
    "when": 1.0,
    "loop": 2.0,
    "scalar": 3.0,
    "signal": 4.0,
    "await": 4.0,
}


def round_machine(in_flight: int = 16) -> Machine:
    """1 cycle is 1 ns; a row takes the HBM 10 ns, a descriptor 20; 100 ns to VMEM, 80 to HBM; `zero` is 50 cycles.

    A row takes 10 ns to the device of the same chip, 200 ns away, and 20 ns to other chips, 400 ns away, over one link.
    """
    file = OperationsFile.model_validate(
        {
            "target": "by hand",
            "source": "by hand",
            "transfers_in_flight": {"value": in_flight, "source": "by hand"},
            "issue": {kind: {"value": cycles, "source": "by hand"} for kind, cycles in ISSUE.items()},
            "kinds": {"zero": {"base": 50.0, "per": {"registers": 0.0}, "points": 0, "error": 0.0}},
        }
    )
    return Machine(
        clock_ghz=1.0,
        bytes_per_ns=51.2,
        descriptor_ns=20.0,
        read_latency_ns=100.0,
        write_latency_ns=80.0,
        in_flight=in_flight,
        table=CycleTable(file, parse_target("tpu7x")),
        network=Network(
            devices_per_chip=2,
            sibling_latency_ns=200.0,
            sibling_bytes_per_ns=51.2,
            link_latency_ns=400.0,
            route_bytes_per_ns=25.6,
            topology=(4,),
            host=(4,),
        ),
    )
