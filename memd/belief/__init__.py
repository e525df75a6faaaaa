"""Whose word counts, when two statements say the same, and which one hides the other."""
