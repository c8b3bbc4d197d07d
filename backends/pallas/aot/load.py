"""Load a kernel file so that the compiler's source lines are lines of its schedule.

The schedule is the function given to `pallas_call` with all functions inside it. Every other top-level function is a
helper: an operation inside it belongs to the line that calls it.
"""

import ast
import types
from pathlib import Path
from typing import Any

HELPERS = "<helpers of a kernel> "  # File name prefix of helper functions; no real file starts so.


def load_kernel(path: Path) -> types.ModuleType:
    """Execute a kernel file as a module. Raises what the file raises."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source, str(path))
    schedule = _schedule_functions(tree)
    helpers = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} - schedule
    code = compile(tree, str(path), "exec")
    constants = tuple(
        _renamed(part, HELPERS + str(path)) if isinstance(part, types.CodeType) and part.co_name in helpers else part
        for part in code.co_consts
    )
    module = types.ModuleType("kernel")
    module.__file__ = str(path)
    exec(code.replace(co_consts=constants), module.__dict__)
    return module


def _schedule_functions(tree: ast.Module) -> set[str]:
    """Names given to `pallas_call` as the kernel, directly or in a `partial`, and the functions that call it."""
    names = set()
    for function in tree.body:
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "pallas_call" and node.args:
                names |= {name.id for name in ast.walk(node.args[0]) if isinstance(name, ast.Name)}
                names |= {function.name} if isinstance(function, ast.FunctionDef) else set()
    return names


def _renamed(code: types.CodeType, filename: str) -> types.CodeType:
    inner = (_renamed(part, filename) if isinstance(part, types.CodeType) else part for part in code.co_consts)
    return code.replace(co_filename=filename, co_consts=tuple(inner))


def arguments_of(kernel: types.ModuleType) -> list[Any]:
    """The kernel's arguments as shapes, in order."""
    import jax

    return [jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in kernel.ARGUMENTS.values()]
