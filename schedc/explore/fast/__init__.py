"""The simulation of `schedc/cost` in compiled loops over arrays: many orderings a second."""
