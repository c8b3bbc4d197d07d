"""Mixers: how a token sees earlier tokens. One kind a file; `Mixer` is the union of the kinds, told apart by `kind`."""

from typing import Annotated

from pydantic import Field

from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.kda import Kda
from schedc.spec.mixers.mla import Mla

Mixer = Annotated[Gqa | Mla | Kda | GatedDelta, Field(discriminator="kind")]
