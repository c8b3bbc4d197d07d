"""Feed-forwards, one kind a file, by the `kind` of the spec."""

from schedc.reference.feed_forwards import dense, moe

APPLY = {"dense": dense.apply, "moe": moe.apply}
