"""`schedc pack` of a checkpoint as Kimi K3's: everything the kernel reads is there bit for bit, the rest is said."""

from pathlib import Path

import numpy as np
from ml_dtypes import bfloat16
from safetensors.numpy import save_file

from schedc.compiler.output import read_output
from schedc.spec.dump import dump_spec
from schedc.weights.head_order import for_kernel
from schedc.weights.pack import unpack
from schedc.weights.packed_file import load_packed
from schedc.weights.random_weights import RandomWeights
from tests.weights.kimi_checkpoint import FLOAT32, LONGER, kimi_checkpoint, kimi_spec

from .conftest import Command


def test_a_checkpoint_of_kimi_k3_is_packed_bit_for_bit(schedc: Command) -> None:
    spec = kimi_spec()
    source = RandomWeights(spec, 0)
    save_file(kimi_checkpoint(source), "model.safetensors")
    Path("kimi.yaml").write_text(dump_spec(spec))
    assert schedc("compile", "kimi.yaml", "--no-check", "--context", "64", "-o", "k").code == 0
    packed = schedc("pack", "k", "--weights-file", "model.safetensors", "-o", "w")
    assert packed.code == 0
    assert packed.err.splitlines() == [
        f"note: attn.decay_scale: {3 + LONGER} numbers are stored, of which the first 3 are read, in 2 layers"
    ]
    layouts = read_output(Path("k")).layouts
    words, expected = load_packed(Path("w"), layouts), for_kernel(source, spec)
    held: dict[str, np.ndarray] = {}
    for layout in layouts:
        for name, values in unpack(layout, words[layout.name]).items():
            stored = expected.load(name)
            mine = values[tuple(slice(size) for size in stored.shape)]
            # Of keys and values that lie together each array has its part, and zeros for the other.
            held[name] = np.where(mine == 0, held.get(name, mine), mine)
    assert set(held) == set(expected.names())
    for name, values in held.items():
        stored = expected.load(name)
        if source.format(name) is None and not name.endswith(FLOAT32):
            stored = stored.astype(bfloat16).astype(np.float32)
        np.testing.assert_array_equal(values, stored, err_msg=name)
