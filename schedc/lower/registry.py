"""Which lowering stands for which kind of mixer and feed-forward."""

from schedc.lower.feed_forwards.dense import DenseLowering
from schedc.lower.feed_forwards.moe import MoeLowering
from schedc.lower.mixers.gated_delta import GatedDeltaLowering
from schedc.lower.mixers.gqa import GqaLowering
from schedc.lower.mixers.kda import KdaLowering
from schedc.lower.mixers.mla import MlaLowering

MIXERS = {"gqa": GqaLowering, "mla": MlaLowering, "kda": KdaLowering, "gated_delta": GatedDeltaLowering}
FEED_FORWARDS = {"dense": DenseLowering, "moe": MoeLowering}
