"""Feed-forwards. One kind a file; `FeedForward` is the union of the kinds, told apart by `kind`."""

from typing import Annotated

from pydantic import Field

from schedc.spec.feed_forwards.dense import Dense
from schedc.spec.feed_forwards.moe import Moe

FeedForward = Annotated[Dense | Moe, Field(discriminator="kind")]
