"""The models that come with schedc and fit the HBM of one device: what a test of every one of them can afford.

The larger ones are compiled for the devices they need by `benchmarks/full_size`, whose table a test holds.
"""

from schedc.lower.unsupported import unsupported
from schedc.spec.load import list_models, load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from schedc.weights.cache import HEADS_AND_SIDES

_BYTES = 2
"""Of a parameter, in the larger of the formats that packaged specs have."""

_SMALL = 1e9
"""Parameters."""


def models_on_one_device() -> list[str]:
    """Names of those that kernels can run, sorted."""
    hbm = parse_target("tpu7x").capability.hbm_bytes

    def fits(spec: ModelSpec) -> bool:
        return _BYTES * sum(spec.parameter_counts().values()) < hbm and not any(unsupported(spec, 1))

    return [name for name in list_models() if fits(load_spec(name))]


def models_for_every_policy() -> list[str]:
    """Those that can be scheduled as they are for 16 rows, in time: of models whose layers keep a state, a small one.

    Of the others a ring of eight slots, a policy's choice where it is told nothing, leaves no room for 16 states.
    """

    def affordable(spec: ModelSpec) -> bool:
        keeps_state = any(block.mixer.kind not in HEADS_AND_SIDES for run in spec.layers for block in run.pattern)
        return not keeps_state or sum(spec.parameter_counts().values()) < _SMALL

    return [name for name in models_on_one_device() if affordable(load_spec(name))]
