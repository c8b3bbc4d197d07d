"""What each device of a slice holds: of every weight family, of the caches, of the vocabulary."""
