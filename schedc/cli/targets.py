"""`schedc targets`: the chips that come with schedc."""

from typing import TYPE_CHECKING, Any

import typer

from schedc.cli.console import Json, print_json, simple_table, to_stdout

if TYPE_CHECKING:
    from schedc.target.target import Target


def register(app: typer.Typer) -> None:
    app.command()(targets)


def targets(json: Json = False) -> None:
    """List the targets in their default topologies: chips and devices, which are not the same.

    Bytes and rates are those of one device. A chip file of your own may say `base: tpu7x` and then only what differs.

    Example:

      schedc compile smollm2-135m --target v6e:2x2
    """
    from schedc.target.target import list_targets

    found = list_targets()
    if json:
        print_json([_entry(target) for target in found])
        return
    numbers = ("chips", "devices", "hosts", "VMEM MiB", "HBM GiB", "HBM GB/s", "MHz")
    table = simple_table("target", "chip", *numbers, right=numbers)
    for target in found:
        table.add_row(
            target.name,
            target.chip.title,
            f"{target.chips}",
            f"{target.devices}",
            f"{target.hosts}",
            f"{target.capability.vmem_usable_bytes / 2**20:.2f}",
            f"{target.capability.hbm_usable_bytes / 2**30:.2f}",
            f"{target.cost.hbm_stream_gb_s:,.0f}",
            f"{target.cost.clock_mhz:,.0f}",
        )
    to_stdout().print(table)


def _entry(target: "Target") -> dict[str, Any]:
    return {
        "name": target.name,
        "title": target.chip.title,
        "chips": target.chips,
        "devices": target.devices,
        "hosts": target.hosts,
        "vmem_bytes": target.capability.vmem_usable_bytes,
        "hbm_bytes": target.capability.hbm_usable_bytes,
        "hbm_stream_gb_s": target.cost.hbm_stream_gb_s,
        "clock_mhz": target.cost.clock_mhz,
    }
