"""Collectives inside the kernel: one file an algorithm, each of which emits IR."""
