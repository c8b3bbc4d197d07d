"""Pages of the documentation that are made from the code and from what it predicts."""
