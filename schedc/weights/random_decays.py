"""Random parameters of decays, such that heads and channels forget at very different speeds.

Of log-decays g = -exp(A)·softplus(f + dt) as layers begin their training in flash-linear-attention
(`fla/layers/kda.py`, after Mamba-2, arXiv 2405.21060): exp(A) uniform in 1..16, softplus(dt) log-uniform in
0.001..0.1. No initialisation of g = -bound·sigmoid(exp(A)·(f + dt)) is published; here exp(A) is uniform in 1/8..2 and
-g at f = 0 log-uniform in 0.001..1, so that a channel remembers for one to a thousand tokens.
"""

import numpy as np

from schedc.spec.mixers import Mixer
from schedc.spec.mixers.kda import Kda, ScaledSigmoidDecay

F32 = np.ndarray
"""f32[heads] or f32[heads · key_dim]"""


def random_scale(mixer: Mixer, uniform: F32) -> F32:
    """A, the logarithm of the factor, of numbers uniform in 0..1."""
    factor = 1.0 + 15.0 * uniform
    return np.log(factor / 8.0 if _sigmoid_decay(mixer) is not None else factor).astype(np.float32)


def random_bias(mixer: Mixer, scale: F32, uniform: F32) -> F32:
    """dt, of the `scale` A of every head and numbers uniform in 0..1."""
    decay = _sigmoid_decay(mixer)
    if decay is None:
        wanted = 0.001 * 100.0**uniform
        return np.log(np.expm1(wanted)).astype(np.float32)
    share = 0.001 * 1000.0**uniform / decay.bound
    logit = np.log(share / (1.0 - share)).reshape(len(scale), -1)
    return (logit / np.exp(scale)[:, None]).reshape(-1).astype(np.float32)


def _sigmoid_decay(mixer: Mixer) -> ScaledSigmoidDecay | None:
    decay = mixer.decay if isinstance(mixer, Kda) else None
    return decay if isinstance(decay, ScaledSigmoidDecay) else None
