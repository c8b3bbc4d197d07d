"""From a model spec to its step graph."""
