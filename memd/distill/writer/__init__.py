"""A language model of the user's choice that writes what was learned, within a daily budget."""
