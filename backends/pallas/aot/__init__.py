"""The real TPU compiler, ahead of time and without a TPU: does a kernel compile, and what is made of it."""
