"""schedc: the schedule compiler for LLM decode megakernels on TPU."""

__version__ = "0.1.0"
