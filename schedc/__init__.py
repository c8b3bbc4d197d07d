"""schedc: the schedule compiler for LLM decode megakernels on TPU.

`schedc.compile` and what else stands in `schedc.api` are imported when they are first used.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from schedc.api import Compilation, ModelSpec, Prediction, Program, Target, compile, predict, read_spec

__all__ = [
    "Compilation", "ModelSpec", "Prediction", "Program", "Target", "__version__", "compile", "predict", "read_spec",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        from schedc import api

        return getattr(api, name)
    raise AttributeError(f"module 'schedc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
