"""The published megakernel for Muse Spark 1.2 on eight TPU7x devices, and the micro-benchmarks of its authors."""
