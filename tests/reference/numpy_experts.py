"""Mixture of experts in numpy, one token and one expert at a time."""

import numpy as np

from schedc.spec.feed_forwards.moe import Moe


def experts(decoder, moe: Moe, prefix: str, x: np.ndarray) -> np.ndarray:
    """f32[tokens, hidden], with the weights `prefix`.… of a `NumpyDecoder`."""
    return np.stack([_token(decoder, moe, prefix, token[None])[0] for token in x])


def _token(decoder, moe: Moe, prefix: str, x: np.ndarray) -> np.ndarray:
    inner = x
    if moe.latent is not None:
        inner = _norm(decoder, moe.latent.norm_in, f"{prefix}.latent_norm_in", decoder.dot(x, f"{prefix}.latent_in"))
    logits = decoder.dot(x, f"{prefix}.router")[0]
    total = np.zeros_like(inner)
    for expert, weight in winners(moe, logits, decoder.weights.get(f"{prefix}.selection_bias")):
        own = f"{prefix}.experts.{expert}"
        y = decoder.dense(moe.expert, own, inner * weight if moe.weigh_input else inner)
        y = _norm(decoder, moe.expert_norm, f"{prefix}.expert_norm", y)
        total = total + (y if moe.weigh_input else weight * y)
    if moe.latent is not None:
        total = decoder.dot(
            _norm(decoder, moe.latent.norm_out, f"{prefix}.latent_norm_out", total), f"{prefix}.latent_out"
        )
    if moe.shared is not None:
        shared = decoder.dense(moe.shared, f"{prefix}.shared", x)
        if moe.shared_gate:
            shared = shared / (1 + np.exp(-decoder.dot(x, f"{prefix}.shared_gate")))
        total = total + shared
    return total


def winners(moe: Moe, logits: np.ndarray, selection_bias: np.ndarray | None) -> list[tuple[int, np.float32]]:
    """(expert, weight) of the chosen ones, the best first."""
    router = moe.router
    logits = logits * np.float32(router.logit_multiplier)
    exponentials = np.exp(logits - logits.max())
    scores = {
        "softmax": exponentials / exponentials.sum(),
        "softmax_of_chosen": logits,
        "sigmoid": 1 / (1 + np.exp(-logits)),
    }[router.score]
    choice = scores if selection_bias is None else scores + selection_bias
    size = moe.experts // router.groups
    groups = [sorted(choice[first : first + size], reverse=True) for first in range(0, moe.experts, size)]
    best = [sum(group[:2]) if router.group_score == "top2_sum" else group[0] for group in groups]
    kept = sorted(range(router.groups), key=lambda group: (-best[group], group))[: router.groups_kept]
    order = sorted((e for e in range(moe.experts) if e // size in kept), key=lambda e: (-choice[e], e))[: moe.top_k]
    weights = scores[order]
    if router.score == "softmax_of_chosen":
        weights = np.exp(weights - weights.max()) / np.exp(weights - weights.max()).sum()
    if router.renormalise:
        weights = weights / (weights.sum() + np.float32(router.epsilon))
    return list(zip(order, weights * np.float32(router.scale), strict=True))


def _norm(decoder, norm, name: str, x: np.ndarray) -> np.ndarray:
    return x if norm is None else decoder.norm(norm, f"{name}_weight", f"{name}_bias", x)
