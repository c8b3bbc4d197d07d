"""The form of `operations.yaml`."""

from pydantic import Field

from schedc.spec.base import Part


class Figure(Part):
    value: float = Field(ge=0)
    source: str


class Count(Part):
    value: int = Field(gt=0)
    source: str


class Formula(Part):
    """Cycles of one kind: `base + Σ per[feature] · feature`; `error`: mean relative error over `points` shapes."""

    base: float
    per: dict[str, float]
    points: int = Field(ge=0)
    error: float = Field(ge=0)


class OperationsFile(Part):
    """`transfers_in_flight` share the HBM at a time; `issue` are cycles of operations that compute nothing."""

    target: str
    source: str
    transfers_in_flight: Count
    issue: dict[str, Figure]
    kinds: dict[str, Formula]
