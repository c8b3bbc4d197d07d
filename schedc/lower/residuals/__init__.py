"""One file a kind of residual."""
