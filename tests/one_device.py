"""The models that come with schedc and fit the HBM of one device: what a test of every one of them can afford.

The larger ones are compiled for the devices they need by `benchmarks/full_size`, whose table a test holds.
"""

from schedc.spec.load import list_models, load_spec
from schedc.target.target import parse_target

_BYTES = 2
"""Of a parameter, in the larger of the formats that packaged specs have."""


def models_on_one_device() -> list[str]:
    """Their names, sorted."""
    hbm = parse_target("tpu7x").capability.hbm_bytes
    return [name for name in list_models() if _BYTES * sum(load_spec(name).parameter_counts().values()) < hbm]
