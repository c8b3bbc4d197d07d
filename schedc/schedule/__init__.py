"""Where every transfer is issued, and how much may be in flight."""
