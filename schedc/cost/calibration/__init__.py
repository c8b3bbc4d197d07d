"""Times that were measured on hardware, in one form whoever measured them."""
