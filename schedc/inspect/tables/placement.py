"""What each device holds of every weight family and of the caches, and by which rule."""

from __future__ import annotations

from schedc.compiler.placement import PlacementReport
from schedc.inspect.table import Column, Table, Value

COLUMNS = (
    Column("family"),
    Column("rule"),
    Column("holds"),
    Column("copies"),
    Column("padding", "%", 1),
    Column("once"),
    Column("device"),
    Column("over", "%", 1),
    Column("share", "%", 1),
    Column("reason", words=True),
)
"""`once`, `device`: bytes of one copy, and of what a device keeps; `over`: how much more all devices have than one
copy takes; `share`: of a device's HBM. Bytes stand in the first line of their family."""
_BRIEF = ("family", "rule", "holds", "copies", "once", "device", "share", "reason")


def placement(report: PlacementReport) -> Table:
    rows: list[tuple[Value, ...]] = []
    nothing: tuple[Value, ...] = (None, None, None, None)
    for family in report.families:
        sizes: tuple[Value, ...] = (
            family.once,
            family.device,
            100 * family.over(report.devices),
            100 * family.device / report.limit,
        )
        for at, one in enumerate(family.held):
            first = sizes if at == 0 else nothing
            reason = _reason(one.rule, one.copies, one.padding, report.devices)
            rows.append((family.family, one.rule, one.what, one.copies, 100 * one.padding, *first, reason))
        if not family.held:
            rows.append((family.family, "replicated", "all", report.devices, 0.0, *sizes, "small: a copy everywhere"))
    caches = sum(report.caches.values())
    for at, one in enumerate(report.cache_statements):
        first = (None, caches, None, 100 * caches / report.limit) if at == 0 else nothing
        reason = _reason(one.rule, one.copies, one.padding, report.devices)
        rows.append(("cache", one.rule, one.what, one.copies, 100 * one.padding, *first, reason))
    share = 100 * report.outputs / report.limit
    rows.append(
        ("outputs", "replicated", "ids, logits, taps", report.devices, 0.0, None, report.outputs, None, share, "")
    )
    total = f"{report.total:,} of {report.limit:,} bytes a device of {report.target}, {report.devices} used"
    return Table("placement", COLUMNS, tuple(rows), (total,), _BRIEF)


def _reason(rule: str, copies: int, padding: float, devices: int) -> str:
    if devices == 1:
        return "one device has all"
    parts = ["a copy on every device" if copies == devices else f"divided by {rule}"]
    if 1 < copies < devices:
        parts.append(f"{copies} devices have the same")
    if padding:
        divided = "experts or their columns" if rule == "experts" else rule
        parts.append(f"{padding:.1%} of the places hold nothing, since {divided} do not divide evenly")
    return "; ".join(parts)
