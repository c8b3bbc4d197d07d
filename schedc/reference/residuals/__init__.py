"""Residuals, one kind a file, by the `kind` of the spec.

A kind has a stream, of what all layers so far have put out, and five functions:
`start`(residual, x, layers) → stream, of the embedded tokens f32[rows, tokens, hidden];
`read`(residual, weights, half, layer, stream) → what half of a block has for input, before its norm;
`join`(residual, weights, half, layer, stream, y) → stream, with the output y of that half;
`running`(stream) → f32[rows, tokens, hidden], what a layer leaves to the next one without any mixture;
`finish`(residual, outer weights, layers, stream) → what the final norm reads.
`layers` is the number of them, `layer` int32[], counted from 0 over the whole model.
"""

from types import ModuleType

from schedc.reference.residuals import block_attention, gated, plain

RESIDUALS: dict[str, ModuleType] = {"plain": plain, "gated": gated, "block_attention": block_attention}
