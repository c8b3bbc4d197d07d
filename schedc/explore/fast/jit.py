"""The compiler of the simulation's and the annealing's inner functions."""

from pathlib import Path

from schedc.ir.allocate.search.jit import compiler

compiled = compiler(Path(__file__).parent, "explore")

inlined = compiler(Path(__file__).parent, "explore", inline=True)
"""For functions with many arrays that are called at every entry of a trace."""
