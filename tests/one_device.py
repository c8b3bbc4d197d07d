"""The models that come with schedc and fit the HBM of one device: what a test of every one of them can afford.

The larger ones are compiled for the devices they need by `benchmarks/full_size`, whose table a test holds.
"""

from schedc.lower.unsupported import unsupported
from schedc.spec.load import list_models, load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target

_BYTES = 2
"""Of a parameter, in the larger of the formats that packaged specs have."""


def models_on_one_device() -> list[str]:
    """Names of those that kernels can run, sorted."""
    hbm = parse_target("tpu7x").capability.hbm_bytes

    def fits(spec: ModelSpec) -> bool:
        return _BYTES * sum(spec.parameter_counts().values()) < hbm and not any(unsupported(spec, 1))

    return [name for name in list_models() if fits(load_spec(name))]
