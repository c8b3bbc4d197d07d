"""f32: an input a word."""

from schedc.weights.formats.format import Format, Section
from schedc.weights.words import from_bits, to_bits

FORMAT = Format(
    "f32",
    (Section("codes", 32, 1),),
    decode=lambda numbers: from_bits(numbers["codes"], "f32"),
    nearest=lambda values: {"codes": to_bits(values, "f32")},
)
