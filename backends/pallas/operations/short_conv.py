"""The short causal convolution before the delta rule, its window, and the norms of queries and keys."""

import jax.numpy as jnp
from jax import lax

from schedc.backends.pallas.operations.delta import load_f32, store_f32
from schedc.backends.pallas.operations.words import stack


def short_conv(
    x,
    window,
    out,
    q_conv,
    k_conv,
    v_conv,
    behind=None,
    *,
    keep,
    panels,
    stride,
    conv,
    key_heads,
    value_heads,
    key_scale,
    eps,
):
    """out f32[panels, 128] = silu(Σ taps · the last `conv` inputs), one sequence's channels, a panel a sublane.

    x f32[panels, 128] is the newest input; window f32[conv − 1][stride, 128] has those before it, oldest first, and is
    taken for zeros if `keep` is 0, whatever it holds; the new one goes `behind`, or in its place. Queries and keys,
    `key_heads` panels each, are divided by sqrt(Σ² + eps), and queries times `key_scale`. q_conv, k_conv
    f32[conv][key_heads, 128], v_conv f32[conv][value_heads, 128].
    """
    parts = ((q_conv, key_heads), (k_conv, key_heads), (v_conv, value_heads))
    taps = [stack([load_f32(part, tap * heads, heads) for part, heads in parts]) for tap in range(conv)]
    inputs = [jnp.where(keep > 0, load_f32(window, tap * stride, panels), 0.0) for tap in range(conv - 1)]
    inputs.append(load_f32(x, 0, panels))
    mixed = inputs[0] * taps[0]
    for tap in range(1, conv):
        mixed = mixed + inputs[tap] * taps[tap]
        store_f32(window if behind is None else behind, (tap - 1) * stride, inputs[tap])
    value = mixed / (1.0 + jnp.exp(-mixed))
    scale = lax.rsqrt(jnp.sum(value * value, axis=1, keepdims=True) + eps)
    row = lax.broadcasted_iota(jnp.int32, (panels, 1), 0)
    scale = jnp.where(row < key_heads, scale * key_scale, jnp.where(row < 2 * key_heads, scale, 1.0))
    store_f32(out, 0, value * scale)
