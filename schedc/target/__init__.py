"""What a model runs on: `Target` (target.py) from a string such as `tpu7x:2x2x1`; chips are data (chips/*.yaml)."""
