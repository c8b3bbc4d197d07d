"""States in HBM that do not grow with the tokens: fetched, updated and written back in every step."""
