"""A kind of chip: what a device of it can hold and do (`capability`), and how long things take (`cost`)."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from schedc.spec.base import Part, Problem
from schedc.target.figures import Figures

DtypeName = Literal["f32", "bf16", "int8", "int4", "fp8_e4m3", "fp8_e5m2", "fp4_e2m1"]


class Capability(Figures):
    """What fits, and what compiles, on one device."""

    vmem_bytes: int = Field(gt=0, description="physical")
    vmem_usable_bytes: int = Field(gt=0, description="the largest limit a kernel can be given")
    vmem_default_limit_bytes: int = Field(gt=0, description="a kernel's limit if it asks for none")
    vmem_internal_bytes: int = Field(ge=0, description="the compiler's own scratch, inside the limit where it is used")
    smem_bytes: int = Field(gt=0)
    smem_usable_bytes: int = Field(gt=0)
    semaphores: int = Field(gt=0, description="that a kernel can allocate, of all kinds together")
    semaphores_per_mixed_input: int = Field(
        ge=0, description="that XLA takes for a scalar input of several words where another input has one word"
    )
    hbm_bytes: int = Field(gt=0)
    hbm_usable_bytes: int = Field(gt=0, description="left for a program's arrays")
    lanes: int = Field(gt=0)
    sublanes: int = Field(gt=0)
    mxus: int = Field(gt=0, description="per core")
    mxu_columns: int = Field(gt=0)
    matmul_dtypes: tuple[DtypeName, ...] = Field(strict=False, description="weights that a dot with bf16 rows takes")
    word_bitcasts: tuple[DtypeName, ...] = Field(strict=False, description="what int32 words can be reinterpreted as")

    def problems(self) -> Iterator[Problem]:
        for inner, outer in (
            ("vmem_usable_bytes", "vmem_bytes"),
            ("smem_usable_bytes", "smem_bytes"),
            ("hbm_usable_bytes", "hbm_bytes"),
        ):
            if getattr(self, inner) > getattr(self, outer):
                yield inner, f"{getattr(self, inner)} is more than {outer} {getattr(self, outer)}"


class CollectiveLine(Part):
    """The time of one collective over `devices` devices: us + us_per_kib · bytes of the activations."""

    kind: str
    algorithm: str
    devices: int = Field(gt=1)
    us: float = Field(ge=0)
    us_per_kib: float = Field(ge=0)


class Cost(Figures):
    """How long things take on one device. 1 GB/s is 1e9 bytes a second."""

    clock_mhz: float = Field(gt=0)
    clock_min_mhz: float | None = Field(default=None, gt=0)
    clock_max_mhz: float | None = Field(default=None, gt=0)
    hbm_peak_gb_s: float = Field(gt=0)
    hbm_stream_gb_s: float = Field(gt=0, description="T = bytes / hbm_stream_gb_s + descriptors · dma_descriptor_ns")
    dma_descriptor_ns: float = Field(ge=0)
    dma_hbm_to_vmem_ns: float = Field(ge=0, description="latency of one transfer")
    dma_vmem_to_hbm_ns: float = Field(ge=0, description="latency of one transfer")
    dot_bytes_per_cycle: dict[DtypeName, float] = Field(description="weight bytes a dot of ≤ 16 bf16 rows takes in")
    dot_drain_cycles: float = Field(ge=0, description="once for back-to-back dots")
    hbm_in_flight: int | None = Field(default=None, gt=0, description="transfers that share the HBM at a time")
    dispatch_us: float = Field(ge=0, description="one call of a program")
    sibling_latency_us: float | None = Field(default=None, ge=0, description="to the other device of the chip")
    sibling_gb_s: float | None = Field(default=None, gt=0)
    link_latency_us: float = Field(ge=0, description="to a device of a neighbouring chip")
    link_hop_us: float | None = Field(default=None, ge=0, description="more for each hop beyond a neighbouring chip")
    link_gb_s: float = Field(gt=0, description="from one device to one other chip, one direction")
    link_shared_gb_s: float | None = Field(
        default=None, gt=0, description="one link, one direction: of all devices of a chip, and what goes through it"
    )
    exchange_skew_us: float | None = Field(default=None, ge=0, description="that the slowest peer comes late")
    links: int = Field(gt=0, description="per chip")
    links_gb_s: float = Field(gt=0, description="from one device over all links to its neighbours at once")
    collective_us: dict[str, float] = Field(description="of a collective of each kind, beside its hops")
    collective_hop_us: float = Field(ge=0, description="one exchange of small blocks, with the waits for it")
    collective_lines: tuple[CollectiveLine, ...] = Field(strict=False, description="known as a whole")


class Chip(Part):
    """`compiler_name` is the chip's name in topologies of the TPU compiler, `device_kind` in JAX's device list."""

    name: str = Field(min_length=1)
    title: str
    compiler_name: str
    device_kind: str
    devices_per_chip: int = Field(gt=0)
    cores_per_device: int = Field(gt=0)
    host_shape: tuple[int, ...] = Field(strict=False, min_length=1, description="chips of one host")
    default_topology: str
    pod_chips: int = Field(gt=0, description="chips of the largest slice")
    capability: Capability
    cost: Cost
