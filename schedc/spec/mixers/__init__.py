"""Mixers: how a token sees earlier tokens. One kind a file; `Mixer` is the union of the kinds, told apart by `kind`."""

from schedc.spec.mixers.gqa import Gqa

Mixer = Gqa
