"""The schedule as a program: nodes, text form, proof, allocation, execution."""
