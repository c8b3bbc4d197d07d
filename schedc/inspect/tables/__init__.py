"""The tables of a compiled program, one a file."""
