"""The model by its definition, in plain JAX: what kernels are compared with. It shares no code with them."""
