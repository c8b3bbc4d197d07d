"""Finding a better schedule: neighbours, annealing, a population of plans."""
