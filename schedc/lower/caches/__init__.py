"""Caches in HBM: where a token lies, what the newest token sees of it, and how tiles stream past the queries."""
