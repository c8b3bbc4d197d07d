"""Which lowering stands for which kind of mixer and feed-forward."""

from schedc.lower.feed_forwards.dense import DenseLowering
from schedc.lower.feed_forwards.moe import MoeLowering
from schedc.lower.mixers.gqa import GqaLowering
from schedc.lower.mixers.mla import MlaLowering

MIXERS = {"gqa": GqaLowering, "mla": MlaLowering}
FEED_FORWARDS = {"dense": DenseLowering, "moe": MoeLowering}
