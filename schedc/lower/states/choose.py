"""How states pass through VMEM, by what the rows of a step are."""

from __future__ import annotations

from collections.abc import Mapping

from schedc.lower.graph import RowsAre
from schedc.lower.states.stream import StateStream
from schedc.lower.states.tokens import TokenStates

STATE_STREAMS: Mapping[RowsAre, type[StateStream]] = {"sequences": StateStream, "tokens": TokenStates}
