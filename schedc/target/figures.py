"""Numbers with their sources: every figure of a chip file is `{value: …, source: …}`."""

from typing import Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from schedc.spec.base import Part

FIGURE_KEYS = {"value", "source", "derived_from", "note"}


class Figures(Part):
    """Fields hold the bare values; where each comes from stands in `sources`, `derived_from` and `notes`.

    In a file a figure has a `source`, or, if nobody published or measured it for this chip, says what it was
    `derived_from`. A value that is not known is null, with a `note`.
    """

    sources: dict[str, str] = Field(default={}, repr=False)
    derived_from: dict[str, str] = Field(default={}, repr=False)
    notes: dict[str, str] = Field(default={}, repr=False)

    def is_derived(self, name: str) -> bool:
        """Whether the figure is an estimate rather than published or measured."""
        return name in self.derived_from

    @model_validator(mode="before")
    @classmethod
    def _split_figures(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "sources" in data:
            return data
        split: dict[str, Any] = {"sources": {}, "derived_from": {}, "notes": {}}
        faults = []
        for name, figure in data.items():
            if not isinstance(figure, dict) or "value" not in figure or set(figure) - FIGURE_KEYS:
                faults.append((str(name), "must be {value, source or derived_from, note if need be}"))
                continue
            split[name] = figure["value"]
            origins = [kind for kind in ("source", "derived_from") if isinstance(figure.get(kind), str)]
            if figure["value"] is None and not isinstance(figure.get("note"), str):
                faults.append((str(name), "an unknown value needs a note"))
            elif figure["value"] is not None and len(origins) != 1:
                faults.append((str(name), "needs a source, or says what it is derived_from"))
            for kind, table in (("source", "sources"), ("derived_from", "derived_from"), ("note", "notes")):
                if isinstance(figure.get(kind), str):
                    split[table][name] = figure[kind]
        if faults:
            text = "; ".join(f"{name}: {message}" for name, message in faults)
            raise PydanticCustomError("part_problems", "{text}", {"text": text, "problems": faults})
        return split
