"""Running generated kernels: decoding steps and text."""
