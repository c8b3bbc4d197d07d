"""Issue cycles of a step by phase, every loop at its trips, beside those of kernels that others wrote by hand."""
