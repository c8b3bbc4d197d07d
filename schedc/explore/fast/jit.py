"""The compiler of the simulation's and the annealing's inner functions."""

from pathlib import Path

from schedc.ir.allocate.search.jit import compiler

compiled = compiler(Path(__file__).parent, "explore")
