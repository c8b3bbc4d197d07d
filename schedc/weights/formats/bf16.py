"""bf16: two inputs a word. Rounds f32 to nearest, ties to even."""

from schedc.weights.formats.format import Format, Section
from schedc.weights.words import from_bits, to_bits

FORMAT = Format(
    "bf16",
    (Section("codes", 16, 1),),
    decode=lambda numbers: from_bits(numbers["codes"], "bf16"),
    nearest=lambda values: {"codes": to_bits(values, "bf16")},
)
