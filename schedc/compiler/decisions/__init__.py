"""What was decided in a compilation, with the alternatives and their cost: one file a kind of decision."""
