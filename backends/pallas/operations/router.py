"""Which experts the rows go to.

Logits are turned: experts lie along sublanes and rows along lanes, of as many panels of 128 experts side by side as
there is room for.
"""

import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.tournament import best_of
from schedc.backends.pallas.operations.words import LANES, lane_index, load_panels, load_vector, stack


def route(
    logits, choices, active, first, winners, chosen, count, seen=None, bias=None, selection_bias=None,
    *, rows, sequences, experts, members, top_k, score, multiplier, groups, groups_kept, group_score, renormalise,
    epsilon, scale, by_number,
):  # fmt: skip
    """Choose `top_k` experts for every active row.

    choices: i32[top_k, 128] and f32[top_k, 128], both padded to whole registers: in lane r the experts of row r, the
    best first, and what it weighs them with. Where nothing is chosen, -1 and 0.
    In SMEM: `winners` i32[sequences * top_k], of every active row the best first, -1 of the others; of the `members`
    experts from `first` on that this device holds, `chosen` are the `count` different ones among them, counted from
    `first`. `seen` i32[members] may be left out where no list can have an expert twice.
    """
    values = [panel * multiplier for panel in load_panels(logits, rows, -(-experts // LANES))]
    if bias is not None:
        values = [value + shift for value, shift in zip(values, load_vector(bias, len(values)), strict=True)]
    together = 1 if groups > 1 else LANES // rows
    logits = turned(values, rows, experts, together)
    ids = expert_ids(logits.shape[0], rows, together)
    apart = min(together, len(values))
    scores = SCORES[score](jnp.where(ids < experts, logits, -jnp.inf), rows, apart)
    choice, more = scores, ()
    if selection_bias is not None:
        shifts = [jnp.broadcast_to(shift, (rows, LANES)) for shift in load_vector(selection_bias, len(values))]
        choice, more = scores + turned(shifts, rows, experts, together), (scores,)
    choice = jnp.where(ids < experts, choice, -jnp.inf)
    if groups > 1:
        choice = of_best_groups(choice, experts // groups, groups_kept, group_score)
    candidates = choice, jnp.minimum(ids, experts - 1.0), *more
    best = best_of(candidates, 1 << (top_k - 1).bit_length(), apart, rows)
    ids, kept = ([part[place] for place in range(top_k)] for part in (best[1], best[2] if more else best[0]))
    live = is_live(active)
    weighed = [jnp.where(live, weight * scale, 0.0) for weight in WEIGHTS[score](kept, renormalise, epsilon)]
    ids = [jnp.where(live, best.astype(jnp.int32), -1) for best in ids]
    held = [along_sublanes(ids, -1), along_sublanes([lax.bitcast_convert_type(w, jnp.int32) for w in weighed], 0)]
    choices[...] = stack(held)
    for row in range(sequences):
        for place, best in enumerate(ids):
            winners[row * top_k + place] = best[0, row]
    if seen is None:
        list_chosen(winners, chosen, count, first, total=sequences * top_k, members=members)
    else:
        find_chosen(winners, seen, chosen, count, first, total=sequences * top_k, members=members, by_number=by_number)


def turned(panels, rows, experts, together):
    """f32[experts of a panel (padded to 8), 128] for every `together` panels f32[rows, 128], one below the other.

    Row r of the n-th panel of them is in lane n * rows + r; in lanes of no panel is 0.
    """
    blocks = []
    for start in range(0, len(panels), together):
        part = panels[start : start + together]
        blank = jnp.zeros((LANES - rows * len(part), LANES), jnp.float32)
        blocks.append(jnp.transpose(stack([*part, blank] if blank.shape[0] else part)))
    whole = stack(blocks)
    return whole[: -(-experts // 8) * 8] if together == 1 or experts < LANES else whole


def expert_ids(height, rows, together):
    """f32[height, 128], exact: which expert is where in what `turned` gives; past the last where there is none."""
    sublane = lax.broadcasted_iota(jnp.int32, (height, LANES), 0)
    lane = lax.broadcasted_iota(jnp.int32, (height, LANES), 1)
    if together == 1:
        return sublane.astype(jnp.float32)
    panel = (sublane >> 7) * together + (lane >> (rows.bit_length() - 1))
    return (panel * LANES + (sublane & (LANES - 1))).astype(jnp.float32)


def along_sublanes(registers, past):
    """[n padded to 8, 128] of n registers whose sublanes are alike, one in each sublane."""
    place, blocks = lax.broadcasted_iota(jnp.int32, (8, LANES), 0), []
    for start in range(0, len(registers), 8):
        block = jnp.full((8, LANES), past, registers[0].dtype)
        for sublane, register in enumerate(registers[start : start + 8]):
            block = jnp.where(place == sublane, register, block)
        blocks.append(block)
    return stack(blocks)


def expert_index(values):
    """f32, as reductions of integers are slow: the row of every element. Exact."""
    return lax.broadcasted_iota(jnp.int32, values.shape, 0).astype(jnp.float32)


def softmax_scores(logits, rows, apart):
    """exp(l) / Σ exp(l) over all experts."""
    top = over_panels(jnp.max(logits, axis=0, keepdims=True), rows, apart, jnp.maximum)
    powers = jnp.exp(logits - top)
    return powers / over_panels(jnp.sum(powers, axis=0, keepdims=True), rows, apart, jnp.add)


def over_panels(values, rows, apart, combine):
    """f32[1, 128]: values of all lanes r, r + rows, r + 2 rows … combined, in each of them, if panels are `apart`."""
    values, shift = jnp.broadcast_to(values, (8, LANES)), rows
    while apart > 1 and shift < LANES:
        values = combine(values, pltpu.roll(values, shift, 1))
        shift *= 2
    return values[:1]


def sigmoid_scores(logits, rows, apart):
    """1 / (1 + exp(-l))."""
    return 1.0 / (1.0 + jnp.exp(-logits))


def logit_scores(logits, rows, apart):
    """The logits themselves, which are turned into weights once the winners are known."""
    return logits


def kept_weights(scores, renormalise, epsilon):
    """The winners' scores, divided by their sum plus `epsilon`."""
    if not renormalise:
        return scores
    total = sum(scores[1:], scores[0]) + epsilon
    return [score / total for score in scores]


def softmax_of_winners(logits, renormalise, epsilon):
    """exp(l) / Σ exp(l) over the winners alone, the best of which is the first."""
    return kept_weights([jnp.exp(logit - logits[0]) for logit in logits], True, 0.0)


SCORES = {"softmax": softmax_scores, "softmax_of_chosen": logit_scores, "sigmoid": sigmoid_scores}
WEIGHTS = {"softmax": kept_weights, "softmax_of_chosen": softmax_of_winners, "sigmoid": kept_weights}


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


def list_chosen(winners, chosen, count, first, *, total, members):
    """List the members among `total` different winners, in their order."""
    found = jnp.int32(0)
    for place in range(chosen.shape[0]):
        chosen[place] = 0
    for winner in range(total):
        member = winners[winner] - first
        held = (member >= 0) & (member < members)
        chosen[found] = jnp.where(held, member, 0)
        found = found + held.astype(jnp.int32)
    count[0] = found


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
