"""Feed-forwards, one kind a file, by the `kind` of the spec."""

from collections.abc import Callable

import jax

from schedc.reference.feed_forwards import dense, moe

APPLY: dict[str, Callable[..., jax.Array]] = {"dense": dense.apply, "moe": moe.apply}
