"""What cannot be emitted: names that Python or the operations do not allow, wrong arguments, no addresses yet."""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from schedc.backends.pallas.emit.devices import device_problems
from schedc.backends.pallas.emit.expressions import in_smem
from schedc.backends.pallas.emit.included import Definition
from schedc.backends.pallas.errors import EmitError
from schedc.ir.program import Compute, Loop, Program, Switch, walk

_MODULES = ("jax", "jnp", "lax", "pl", "pltpu", "PartitionSpec", "range", "min", "max")
_TAKEN = (*_MODULES, "TABLES", "kernel", "step_on_device", "on_mesh", "decode_step", "decode_steps")


def refuse(program: Program, definitions: dict[str, Definition]) -> None:
    """Raises EmitError with every problem there is."""
    problems = [*_name_problems(program, {*definitions, *_TAKEN}), *_argument_problems(program, definitions)]
    problems += [
        f"{buffer.name}: has no address yet; allocate first" for buffer in program.buffers if buffer.address is None
    ]
    problems += device_problems(program)
    if problems:
        raise EmitError("\n".join(["the program cannot be emitted:", *(f"  {problem}" for problem in problems)]))


def _name_problems(program: Program, taken: set[str]) -> Iterator[str]:
    storage = (program.pools, program.buffers, program.arrays, program.scalars, program.semaphores)
    names = [declared.name for kind in storage for declared in kind]
    names += [f"{array.name}_before" for array in program.arrays if array.role == "state"]
    names += [in_smem(table.name) for table in program.scalars if table.role == "table"]
    names += ["selected"] if any(isinstance(op, Switch) for op in walk(program.body)) else []
    names += ["rank"] if program.devices > 1 else []
    taken = set(taken)
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name):
            yield f"{name}: not a Python name"
        elif name in taken:
            yield f"{name}: already the name of an operation or of other storage"
        taken.add(name)
    for counter in dict.fromkeys(op.counter for op in walk(program.body) if isinstance(op, Loop)):
        if not counter.isidentifier() or keyword.iskeyword(counter):
            yield f"counter {counter}: not a Python name"
        elif counter in taken:
            yield f"counter {counter}: already the name of an operation or of storage"


def _argument_problems(program: Program, definitions: dict[str, Definition]) -> Iterator[str]:
    """Arguments that a computation gives and its operation does not have, or the other way round; each once."""
    problems: dict[str, None] = {}
    for op in walk(program.body):
        if not isinstance(op, Compute):
            continue
        definition = definitions[op.kind]
        given = [operand.name for operand in op.operands]
        given += [name for name, _ in op.sets]
        given += list(dict.fromkeys(name.partition(".")[0] for name, _ in op.scalars))
        given += [name for name, _ in op.attributes]
        has = ", ".join(definition.parameters) or "none"
        for name in given:
            if name not in definition.parameters:
                problems[f"compute {op.kind}: has no argument {name}; it has {has}"] = None
            elif given.count(name) > 1:
                problems[f"compute {op.kind}: the argument {name} is given twice"] = None
        for name in definition.required:
            if name not in given:
                problems[f"compute {op.kind}: the argument {name} is missing"] = None
    yield from problems
