"""The kernel's parameters, the one `pallas_call` on a device, and `decode_step` on the devices of a mesh."""

from __future__ import annotations

from schedc.backends.pallas.emit.body import BodyEmitter, buffer_lines
from schedc.backends.pallas.emit.devices import updates_in_place
from schedc.backends.pallas.emit.expressions import in_smem
from schedc.backends.pallas.emit.interface import arguments, inputs, outputs, states, tables
from schedc.ir.program import Array, Barrier, Program, Scalars, walk


def _in_smem(program: Program, body: BodyEmitter) -> list[Scalars]:
    return [table for table in tables(program) if table.name in body.smem_tables]


def signature_lines(program: Program, body: BodyEmitter) -> list[str]:
    """The head of the kernel, with a view of the pools for every buffer; `body` has been emitted.

    Parameters stand as `pallas_call` passes them: scalars, arrays, results, scratch.
    """
    before = "" if updates_in_place(program) else "_before"
    scalars = [s.name for s in inputs(program)] + [in_smem(table.name) for table in _in_smem(program, body)]
    arrays = [a.name if a.role != "state" else f"{a.name}{before}" for a in arguments(program)]
    results = [a.name for a in _results(program)]
    scratch = [pool.name for pool in program.pools]
    scratch += [s.name for s in program.scalars if s.role == "local"]
    scratch += [s.name for s in program.semaphores]
    lines = ["def kernel("]
    for group in (scalars, arrays, results, scratch):
        if group:
            lines.append(f"    {', '.join(group)},")
    lines.append("):")
    if body.uses_rank:
        lines.append('    rank = lax.axis_index("device")')
    for table in tables(program):
        if table.name in body.static_tables:
            lines.append(f"    {table.name} = TABLES[{table.name!r}]")
    for buffer in program.buffers:
        lines += buffer_lines(buffer, 1)
    return [*lines, ""]


def _results(program: Program) -> list[Array]:
    """What the kernel returns: states too, unless it updates them where they are."""
    return outputs(program) if updates_in_place(program) else states(program) + outputs(program)


def call_lines(program: Program, body: BodyEmitter) -> list[str]:
    """The one call of the kernel on a device, the mesh around it, and `decode_step`, which callers use."""
    partition = 'PartitionSpec("device")' if program.devices > 1 else "PartitionSpec()"
    return [
        *_on_device_lines(program, body),
        *_on_mesh_lines(program),
        "",
        "",
        "def decode_step(mesh, *, interpret=False):",
        *_introduction(program),
        f"    outputs = ({partition},) * {len(states(program)) + len(outputs(program))}",
        "    return on_mesh(mesh, step_on_device(interpret), outputs)",
    ]


def first_state(program: Program) -> int:
    """The index of the first state among a step's arguments; what comes before is never written."""
    return len(inputs(program)) + len(arguments(program)) - len(states(program))


def _on_device_lines(program: Program, body: BodyEmitter) -> list[str]:
    in_place = updates_in_place(program)
    copied = _in_smem(program, body)
    scalars, results = inputs(program), _results(program)
    first = first_state(program)
    aliases = {len(copied) + first + index: index for index in range(len(states(program)))}
    return [
        "",
        "def step_on_device(interpret):",
        '    """One step on the arguments of one device: ARGUMENTS in order, OUTPUTS out."""',
        *(_for_the_interpreter(program, len(copied) + first) if in_place else []),
        "    step = pl.pallas_call(",
        "        updating_results if interpret else kernel," if in_place else "        kernel,",
        "        name=NAME,",
        "        out_shape=(",
        *(["            *updated,"] if in_place else []),
        *(f"            {_shape(a)},  # {a.name}" for a in results),
        "        ),",
        "        in_specs=(",
        *(f"            pl.BlockSpec(memory_space=pltpu.SMEM),  # {s.name}" for s in [*scalars, *copied]),
        *(f"            pl.BlockSpec(memory_space=pltpu.HBM),  # {a.name}" for a in arguments(program)),
        "        ),",
        f"        out_specs=(pl.BlockSpec(memory_space=pltpu.HBM),) * {_count(len(results), in_place)},",
        "        scratch_shapes=(",
        *(f"            pltpu.VMEM(({pool.rows}, 128), jnp.int32),  # {pool.name}" for pool in program.pools),
        *(
            f"            pltpu.SMEM(({s.length},), jnp.int32),  # {s.name}"
            for s in program.scalars
            if s.role == "local"
        ),
        *(f"            pltpu.SemaphoreType.{s.kind.upper()}(({s.count},)),  # {s.name}" for s in program.semaphores),
        "        ),",
        f"        input_output_aliases={f'{aliases!r} if interpret else {{}}' if in_place else repr(aliases)},",
        "        # Every address is proven to be in range, so the checks at run time are off.",
        f"        compiler_params=pltpu.CompilerParams({', '.join(_parameters(program))}),",
        "        interpret=interpret,",
        "    )",
        "",
        "    def on_device(*arguments):",
        '        """Weights are kept in HBM: the compiler may otherwise move small ones into VMEM."""',
        f"        scalars, weights, states = arguments[:{len(scalars)}], "
        f"arguments[{len(scalars)}:{first}], arguments[{first}:]",
        *(["        kept = states"] if in_place else []),
        "        if not interpret:",
        "            weights = [pltpu.with_memory_space_constraint(weight, pltpu.HBM) for weight in weights]",
        *(
            ["            kept = [pltpu.with_memory_space_constraint(state, pltpu.HBM) for state in states]"]
            if in_place
            else []
        ),
        *(
            [f"        tables = [jnp.array(TABLES[name], jnp.int32) for name in {tuple(t.name for t in copied)!r}]"]
            if copied
            else []
        ),
        *_return(bool(copied), in_place),
        "",
        "    return on_device",
    ]


def _on_mesh_lines(program: Program) -> list[str]:
    scalars, arrays, first = len(inputs(program)), len(arguments(program)), first_state(program)
    donated = tuple(range(first, first + len(states(program))))
    several = program.devices > 1
    divided = [
        '    whole, rows = PartitionSpec(), PartitionSpec("device")',
        f"    inputs = (whole,) * {scalars} + (rows,) * {arrays}",
    ]
    return [
        "",
        "",
        "def on_mesh(mesh, on_device, outputs):",
        '    """`on_device` jitted for the devices of `mesh`: ARGUMENTS in order, `outputs` say where results are."""',
        *(_mesh_check() if several else []),
        *(divided if several else [f"    inputs = (PartitionSpec(),) * {scalars + arrays}"]),
        "    mapped = jax.shard_map(on_device, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)",
        f"    return jax.jit(mapped, donate_argnums={donated!r})",
    ]


def _mesh_check() -> list[str]:
    return [
        '    if dict(mesh.shape) != {"device": DEVICES}:',
        "        asked = f\"a mesh of {DEVICES} devices on the one axis 'device'\"",
        '        raise ValueError(f"{NAME} wants {asked}, this one is {dict(mesh.shape)}")',
    ]


def _shape(array: Array) -> str:
    return f"jax.ShapeDtypeStruct(({array.rows}, 128), jnp.int32)"


def _count(results: int, in_place: bool) -> str:
    return f"({results} + len(updated))" if in_place else str(results)


def _parameters(program: Program) -> list[str]:
    limit = dict(program.attributes).get("vmem_limit_bytes")
    parameters = [f"vmem_limit_bytes={limit}", "disable_bounds_checks=True"]
    if any(isinstance(op, Barrier) for op in walk(program.body)):
        parameters.append("collective_id=0")
    return [*parameters, "has_side_effects=True"] if updates_in_place(program) else parameters


def _introduction(program: Program) -> list[str]:
    what = "The jitted step on the devices of `mesh`: ARGUMENTS in order, OUTPUTS out; STATE is donated."
    if program.devices == 1:
        return [f'    """{what}"""']
    in_place = [
        "",
        "    The kernel writes a state where it is, unseen by XLA, which would copy what a kernel that talks to other",
        "    devices returns. So call it as it is, not from inside another jitted function that reads a state too.",
    ]
    return [
        f'    """{what}',
        "",
        "    `mesh` has the one axis `device`, of DEVICES devices. Arrays are divided by rows; scalars are whole.",
        *(in_place if updates_in_place(program) else []),
        '    """',
    ]


def _for_the_interpreter(program: Program, first_state: int) -> list[str]:
    after = first_state + len(states(program))
    return [
        "",
        "    def updating_results(*refs):",
        '        """The kernel for the interpreter, which returns only what is written to results."""',
        f"        kernel(*refs[:{first_state}], *refs[{after}:])",
        "",
        "    updated = (",
        *(f"        {_shape(a)},  # {a.name}" for a in states(program)),
        "    )",
        "    updated = updated if interpret else ()",
    ]


def _return(tables: bool, in_place: bool) -> list[str]:
    call = f"step(*scalars, {'*tables, ' if tables else ''}*weights, *{'kept' if in_place else 'states'})"
    if not in_place:
        return [f"        return {call}"]
    return [
        f"        results = {call}",
        "        return results if interpret else lax.optimization_barrier((*states, *results))",
    ]
