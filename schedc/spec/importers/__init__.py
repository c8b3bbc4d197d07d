"""Hugging Face `config.json` → `ModelSpec`. One family a file; `registry.py` knows which reads which model type."""
