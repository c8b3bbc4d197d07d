"""Full-size compiles: every case through the whole of schedc and the real TPU compiler, as a committed table."""
