"""One file a kind of feed-forward."""
