"""The roof: one process per vault, its rooms supervised, its clock read here alone."""
