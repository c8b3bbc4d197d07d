"""Which schedule is best: a fast simulator, a search, a yardstick, ablations, tables."""
