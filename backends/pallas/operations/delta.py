"""The delta rule: what a state f32[key_dim, value_dim] a head keeps of the tokens before, and what a token reads.

A sequence's vectors lie one a sublane: f32[vectors, 128], a head's query, key or value in the 128 lanes of a row. Its
states have keys on sublanes and values on lanes, so that a sum over the keys adds registers.
"""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.norm import norm_vectors, normalised
from schedc.backends.pallas.operations.words import LANES, dot, load_panels, load_vector, stack, store_operand


def load_f32(ref, first, count):
    """f32[count, 128]: rows of words."""
    return pltpu.bitcast(ref[pl.ds(first, count), :], jnp.float32)


def store_f32(ref, first, value):
    ref[pl.ds(first, value.shape[0]), :] = pltpu.bitcast(value, jnp.int32)


def scatter_rows(ref, place, stride, value):
    """Row r of f32[rows, 128] becomes row `place` of the r-th sequence, whose vectors are `stride` rows."""
    ref[pl.ds(place, value.shape[0], stride=stride), :] = pltpu.bitcast(value, jnp.int32)


def by_sequence(y, out, *, rows, sequences, panels, stride):
    """out f32[sequences][stride, 128]: a sequence's panels, one a sublane, of y f32[rows, panels * 128]."""
    for sequence in range(sequences):
        out[pl.ds(sequence * stride, panels), :] = y[pl.ds(sequence, panels, stride=rows), :]


def logistic(x):
    return 1.0 / (1.0 + jnp.exp(-x))


def softplus(x):
    return jnp.maximum(x, 0.0) + jnp.log(1.0 + jnp.exp(-jnp.abs(x)))


def log_decay(x, scale, kind, bound):
    """Of what a token projects to: −bound · σ(e^A · x) (scaled_sigmoid) or −e^A · softplus(x)."""
    if kind == "scaled_sigmoid":
        return -bound * logistic(jnp.exp(scale) * x)
    return -jnp.exp(scale) * softplus(x)


def delta_gates(
    f, beta, decay_out, beta_out, decay_bias, decay_scale,
    *, rows, sequences, heads, stride, decay_of, kind, bound=0.0,
):  # fmt: skip
    """How much a token keeps and how much it changes, each f32[sequences][stride, 128], a head a sublane.

    decay = exp(log-decay) of every key (`decay_of` "keys": f, decay_bias f32[…, heads * 128]) or the same in all lanes
    ("heads": a head a lane); beta = σ(beta), a head a lane before, the same in all lanes after.
    """
    panels = -(-heads // LANES)
    scales, rates = load_vector(decay_scale, panels), [logistic(panel) for panel in load_panels(beta, rows, panels)]
    by_key = decay_of == "keys"
    count = heads if by_key else panels
    values, biases = load_panels(f, rows, count), load_vector(decay_bias, count)
    if not by_key:
        values = [
            jnp.exp(log_decay(value + bias, scale, kind, bound))
            for value, bias, scale in zip(values, biases, scales, strict=True)
        ]
    for head in range(heads):
        panel, lane = head // LANES, head % LANES
        if by_key:
            scale = scales[panel][:, lane : lane + 1]
            kept = jnp.exp(log_decay(values[head] + biases[head], scale, kind, bound))
        else:
            kept = jnp.broadcast_to(values[panel][:, lane : lane + 1], (rows, LANES))
        rate = jnp.broadcast_to(rates[panel][:, lane : lane + 1], (rows, LANES))
        scatter_rows(decay_out, head, stride, kept[:sequences])
        scatter_rows(beta_out, head, stride, rate[:sequences])


def as_column(vector, rows):
    """f32[rows, 128]: a vector f32[1, 128] as a column, the same in all lanes."""
    return jnp.transpose(jnp.broadcast_to(vector, (LANES, LANES)))[:rows]


def as_columns(vectors):
    """The same of every vector of f32[count, 128], by dots with ones: exact, as three bf16 parts are all 24 bits."""
    count = -(-vectors.shape[0] // 8) * 8
    missing = [jnp.zeros((count - vectors.shape[0], LANES), jnp.float32)] if count > vectors.shape[0] else []
    turned, total = jnp.transpose(stack([vectors, *missing])), None
    row, lane = (lax.broadcasted_iota(jnp.int32, (count, vectors.shape[0] * LANES), axis) for axis in (0, 1))
    ones = jnp.where((lane >= row * LANES) & (lane < (row + 1) * LANES), 1.0, 0.0).astype(jnp.bfloat16)
    for _ in range(3):
        part = turned.astype(jnp.bfloat16)
        turned = turned - part.astype(jnp.float32)
        product = dot(part, ones, "bf16")
        total = product if total is None else total + product
    return [total[:, place * LANES : (place + 1) * LANES] for place in range(vectors.shape[0])]


def delta_rule(
    vectors, decay, beta, state, out, behind=None,
    *, keep, group, groups, key_heads, value_heads, key_rows, key_first, value_first, decay_of,
):  # fmt: skip
    """One token of one sequence: S = decay · S; S += k · beta·(v − kᵀS); out = qᵀS, for one group of heads.

    vectors f32[…, 128] has the queries of all groups from row 0, their keys from row `key_first` and their values from
    row `value_first`: `key_heads` and `value_heads` of each group. The rest is of this group: state
    f32[value_heads][key_rows, 128], taken for zeros if `keep` is 0, whatever it holds; the new one goes `behind`, or in
    its place; decay and beta f32[value_heads, 128], see `delta_gates`.
    """

    def first(rows):
        return pl.multiple_of(group * rows, 8) if groups > 1 else 0

    near, far = first(key_heads), first(value_heads)
    query, key = load_f32(vectors, near, key_heads), load_f32(vectors, near + key_first, key_heads)
    value = load_f32(vectors, far + value_first, value_heads)
    kept, rate = load_f32(decay, 0, value_heads), load_f32(beta, 0, value_heads)
    met = jnp.sum(query * key, axis=1, keepdims=True)
    shared, results = value_heads // key_heads, []
    # A decay of every key waits for transpositions while the MXU is idle; one a head would wait for the MXU.
    queries = as_columns(query) if decay_of == "keys" else None
    for head in range(key_heads):  # One after the other: the columns of one head are all that registers hold.
        turned = as_column(key[head : head + 1], key_rows)
        asked = as_column(query[head : head + 1], key_rows) if queries is None else queries[head][:key_rows]
        for place in range(head * shared, (head + 1) * shared):
            row = slice(place, place + 1)
            old = jnp.where(keep > 0, load_f32(state, place * key_rows, key_rows), 0.0)
            old = old * (as_column(kept[row], key_rows) if decay_of == "keys" else kept[row])
            told = jnp.sum(old * turned, axis=0, keepdims=True)
            read = jnp.sum(old * asked, axis=0, keepdims=True)
            change = (value[row] - told) * rate[row]
            store_f32(state if behind is None else behind, place * key_rows, old + turned * change)
            results.append(read + met[head : head + 1] * change)
    store_f32(out, 0, stack(results))


def delta_outputs(
    o, gate, out, output_norm=None, output_norm_bias=None,
    *, rows, sequences, heads, stride, value_dim, activation, dtype, norm_kind, norm_eps,
):  # fmt: skip
    """The left side [rows, heads * 128]: norm(o) of every head times σ(gate), or gate · σ(gate) (silu).

    o f32[sequences][stride, 128], a head a sublane; gate f32[rows, heads * 128].
    """
    gain, shift = norm_vectors(output_norm, output_norm_bias, 1)
    gates, values = load_panels(gate, rows, heads), []
    for head in range(heads):
        value = pltpu.bitcast(o[pl.ds(head, sequences, stride=stride), :], jnp.float32)
        (value,) = normalised([value], gain, shift, columns=value_dim, eps=norm_eps, kind=norm_kind)
        opened = logistic(gates[head][:sequences])
        value = value * (opened if activation == "sigmoid" else gates[head][:sequences] * opened)
        missing = [jnp.zeros((rows - sequences, LANES), jnp.float32)] if rows > sequences else []
        values.append(stack([value, *missing]))
    store_operand(out, rows, values, dtype)
