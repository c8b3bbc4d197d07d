"""The constants of the cost model, fitted to measured times, and how far its predictions are from them."""
