"""Weights: fetching (fetch.py), reading (open.py), layout in HBM (layout.py, forms/), packing (pack.py)."""
