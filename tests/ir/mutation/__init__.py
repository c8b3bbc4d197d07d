"""Single faults of many kinds put into programs at random, and what the executor and the proof say of each."""

from tests.ir.mutation import (  # noqa: F401 - each registers its kinds
    amounts,
    choices,
    devices,
    iterations,
    memory,
    order,
    presence,
    targets,
)
