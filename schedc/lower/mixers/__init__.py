"""One file a kind of mixer."""
