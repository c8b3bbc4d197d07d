"""What a model is: `ModelSpec` (model.py), reading it (load.py), writing it (dump.py), importing it (importers/)."""
