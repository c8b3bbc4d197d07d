"""Which lowering stands for which kind of mixer and feed-forward."""

from collections.abc import Callable, Mapping

from schedc.lower.feed_forwards.dense import DenseLowering
from schedc.lower.feed_forwards.moe import MoeLowering
from schedc.lower.mixers.expanded_mla import ExpandedMlaLowering
from schedc.lower.mixers.gated_delta import GatedDeltaLowering
from schedc.lower.mixers.gqa import GqaLowering
from schedc.lower.mixers.kda import KdaLowering
from schedc.lower.mixers.mla import MlaLowering
from schedc.lower.parts import Part

MLA: Mapping[str, Callable[..., Part]] = {"absorbed": MlaLowering, "expanded": ExpandedMlaLowering}
"""By what the cache keeps."""

MIXERS: Mapping[str, Callable[..., Part]] = {
    "gqa": GqaLowering,
    "mla": lambda mla, *where: MLA[mla.cache](mla, *where),
    "kda": KdaLowering,
    "gated_delta": GatedDeltaLowering,
}
FEED_FORWARDS = {"dense": DenseLowering, "moe": MoeLowering}
