"""The whole way from a spec to a checked kernel."""
