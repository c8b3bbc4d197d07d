"""Which experts a token goes to, and with which weights."""

import jax
import jax.numpy as jnp

from schedc.reference.notes import SILENT, Notes
from schedc.spec.feed_forwards.router import Router

GIVEN_WINNERS = "mlp.given_winners"
"""Among the weights of a layer: int32[..., top_k], who wins whatever the choices are; -1: who has the best."""


def route(
    router: Router,
    top_k: int,
    logits: jax.Array,
    bias: jax.Array | None,
    selection_bias: jax.Array | None,
    given: jax.Array | None = None,
    note: Notes = SILENT,
) -> tuple[jax.Array, jax.Array]:
    """logits f32[..., experts] → the ids int32[..., top_k] of the winners and their weights f32[..., top_k].

    Of equal choices the lower id wins, of equal groups the lower group. `given`: winners in place of those, where they
    are not -1.
    """
    logits = router.logit_multiplier * logits
    if bias is not None:
        logits = logits + bias
    scores = {"softmax": jax.nn.softmax, "softmax_of_chosen": lambda logits: logits, "sigmoid": jax.nn.sigmoid}[
        router.score
    ](logits)
    choice = scores if selection_bias is None else scores + selection_bias
    note("mlp.choices", choice)
    _, ids = jax.lax.top_k(_of_best_groups(router, choice), top_k)
    if given is not None:
        ids = jnp.where(given >= 0, given, ids)
    weights = jnp.take_along_axis(scores, ids, -1)
    if router.score == "softmax_of_chosen":
        weights = jax.nn.softmax(weights)
    if router.renormalise:
        weights = weights / (weights.sum(-1, keepdims=True) + router.epsilon)
    return ids, router.scale * weights


def _of_best_groups(router: Router, choice: jax.Array) -> jax.Array:
    """The choices of all other groups are -inf."""
    if router.groups == 1:
        return choice
    grouped = choice.reshape(*choice.shape[:-1], router.groups, -1)
    best = jax.lax.top_k(grouped, min(2, grouped.shape[-1]) if router.group_score == "top2_sum" else 1)[0].sum(-1)
    kept = jax.lax.top_k(best, router.groups_kept)[1]
    keep = (jnp.arange(router.groups) == kept[..., None]).any(-2)
    return jnp.where(keep[..., None], grouped, -jnp.inf).reshape(choice.shape)
