"""How a cache streams past the queries, by what the rows of a step are."""

from __future__ import annotations

from collections.abc import Mapping

from schedc.lower.caches.stream import CacheStream
from schedc.lower.caches.tokens import TokenStream
from schedc.lower.graph import RowsAre

STREAMS: Mapping[RowsAre, type[CacheStream]] = {"sequences": CacheStream, "tokens": TokenStream}
