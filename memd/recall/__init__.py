"""Question to answer: legs, fusion, signals, and an explanation that adds up."""
