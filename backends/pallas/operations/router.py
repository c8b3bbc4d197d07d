"""Which experts the rows go to.

Scores are turned so that experts lie along sublanes and rows along lanes: a maximum over experts is
then one of registers, for all rows at once.
"""

import jax.numpy as jnp
from jax import lax

from schedc.backends.pallas.operations.words import LANES, lane_index, load_panels, load_vector, stack, store_panels


def route(
    logits, weights, active, first, winners, seen, chosen, count, bias=None, selection_bias=None,
    *, rows, sequences, experts, members, top_k, score, multiplier, groups, groups_kept, group_score, renormalise,
    epsilon, scale, by_number,
):  # fmt: skip
    """Choose `top_k` experts for every active row.

    weights f32[experts, 128]: in lane r what row r weighs each expert with, exactly 0 if it has not chosen it.
    In SMEM: `winners` i32[sequences * top_k], of every active row the best first, -1 of the others; of the `members`
    experts from `first` on that this device holds, `chosen` are the `count` different ones among them, counted from
    `first`.
    """
    values = [panel * multiplier for panel in load_panels(logits, rows, -(-experts // LANES))]
    if bias is not None:
        values = [value + shift for value, shift in zip(values, load_vector(bias, len(values)), strict=True)]
    scores = SCORES[score](turned(values, experts, -jnp.inf))
    choice = scores
    if selection_bias is not None:
        shifts = [jnp.broadcast_to(shift, (rows, LANES)) for shift in load_vector(selection_bias, len(values))]
        choice = scores + turned(shifts, experts, -jnp.inf)
    if groups > 1:
        choice = of_best_groups(choice, experts // groups, groups_kept, group_score)
    ids, taken = largest(choice, top_k, experts)
    weighed = WEIGHTS[score](scores, taken, renormalise, epsilon)
    live = is_live(active)
    held = jnp.where(taken & live, weighed * scale, 0.0)
    store_panels(weights, held.shape[0], [held])
    ids = [jnp.where(live, best, -1) for best in ids]
    for row in range(sequences):
        for place, best in enumerate(ids):
            winners[row * top_k + place] = best[0, row]
    find_chosen(winners, seen, chosen, count, first, total=sequences * top_k, members=members, by_number=by_number)


def turned(panels, experts, past):
    """f32[experts padded to 8, 128], rows along lanes, from panels f32[rows, 128] of experts; `past` is the padding."""
    blank = jnp.zeros((LANES - panels[0].shape[0], LANES), jnp.float32)
    whole = stack([jnp.transpose(jnp.concatenate([panel, blank], axis=0)) for panel in panels])
    whole = whole[: -(-experts // 8) * 8]
    return whole if experts % 8 == 0 else jnp.where(expert_index(whole) < experts, whole, past)


def expert_index(values):
    """f32, as reductions of integers are slow: the row of every element. Exact."""
    return lax.broadcasted_iota(jnp.int32, values.shape, 0).astype(jnp.float32)


def softmax_scores(logits):
    """exp(l) / Σ exp(l) over all experts."""
    powers = jnp.exp(logits - jnp.max(logits, axis=0, keepdims=True))
    return powers / jnp.sum(powers, axis=0, keepdims=True)


def sigmoid_scores(logits):
    """1 / (1 + exp(-l))."""
    return 1.0 / (1.0 + jnp.exp(-logits))


def logit_scores(logits):
    """The logits themselves, which are turned into weights once the winners are known."""
    return logits


def kept_weights(scores, taken, renormalise, epsilon):
    """The winners' scores, divided by their sum plus `epsilon`."""
    held = jnp.where(taken, scores, 0.0)
    return held / (jnp.sum(held, axis=0, keepdims=True) + epsilon) if renormalise else held


def softmax_of_winners(logits, taken, renormalise, epsilon):
    """exp(l) / Σ exp(l) over the winners alone."""
    held = jnp.where(taken, logits, -jnp.inf)
    return kept_weights(jnp.exp(held - jnp.max(held, axis=0, keepdims=True)), taken, True, 0.0)


SCORES = {"softmax": softmax_scores, "softmax_of_chosen": logit_scores, "sigmoid": sigmoid_scores}
WEIGHTS = {"softmax": kept_weights, "softmax_of_chosen": softmax_of_winners, "sigmoid": kept_weights}


def largest(choice, count, experts):
    """The experts with the `count` largest choices of every lane: ids i32[1, 128] from the best on, and a mask of all.

    Of equal choices the lowest id wins. A lane of NaN gets ids in range, too.
    """
    index = expert_index(choice)
    taken, ids = jnp.zeros(choice.shape, jnp.bool_), []
    for _ in range(count):
        top = jnp.max(jnp.where(taken, -jnp.inf, choice), axis=0, keepdims=True)
        best = jnp.min(jnp.where((choice == top) & ~taken, index, experts - 1.0), axis=0, keepdims=True)
        taken = taken | (index == best)
        ids.append(best.astype(jnp.int32))
    return ids, taken


def of_best_groups(choice, size, kept, group_score):
    """The choices of the `kept` best groups of `size` experts, -inf elsewhere. Of equal groups the lower one wins."""
    groups = [choice[start : start + size] for start in range(0, choice.shape[0] // size * size, size)]
    best = [jnp.max(group, axis=0, keepdims=True) for group in groups]
    if group_score == "top2_sum" and size > 1:
        best = [top + second_largest(group, top) for group, top in zip(groups, best, strict=True)]
    parts = []
    for number, (group, own) in enumerate(zip(groups, best, strict=True)):
        better = jnp.zeros(own.shape, jnp.float32)
        for other, score in enumerate(best):
            ahead = score >= own if other < number else score > own
            if other != number:
                better = better + jnp.where(ahead, 1.0, 0.0)
        parts.append(jnp.where(better < kept, group, -jnp.inf))
    if choice.shape[0] % size:
        parts.append(choice[choice.shape[0] // size * size :])
    return stack(parts)


def second_largest(group, top):
    index = expert_index(group)
    best = jnp.min(jnp.where(group == top, index, group.shape[0] - 1.0), axis=0, keepdims=True)
    return jnp.max(jnp.where(index == best, -jnp.inf, group), axis=0, keepdims=True)


def is_live(active):
    """A mask of the lanes whose row is active."""
    lane = lane_index(1)
    live = jnp.zeros(lane.shape, jnp.bool_)
    for row, flag in enumerate(active):
        live = live | ((lane == row) & (flag != 0))
    return live


def find_chosen(winners, seen, chosen, count, first, *, total, members, by_number):
    """List every member among the `total` winners once, in their order or by its number."""
    for member in range(members):
        seen[member] = 0
    for place in range(chosen.shape[0]):
        chosen[place] = 0

    def mark(winner, found):
        """List it if it is new; past the last one there is room for what is not."""
        member = winners[winner] - first
        held = jnp.minimum(jnp.maximum(member, 0), members - 1)
        new = ((member == held) & (seen[held] == 0)).astype(jnp.int32)
        chosen[found] = held
        seen[held] = seen[held] | new
        return found + new

    found = lax.fori_loop(0, total, mark, jnp.int32(0))
    if by_number:

        def collect(member, found):
            chosen[found] = member
            return found + seen[member]

        found = lax.fori_loop(0, members, collect, jnp.int32(0))
    count[0] = found
