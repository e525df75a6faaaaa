"""Judgments on statements: whose authority counts, when two say the same, and which one hides the other."""
