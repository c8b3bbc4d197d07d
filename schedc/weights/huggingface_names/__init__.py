"""Tables of tensor names, a file for each family of checkpoints; `tensor_names.py` reads them."""
