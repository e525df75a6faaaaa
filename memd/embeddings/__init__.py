"""Models: text to vector, text to text. Each behind a port in memd's own words."""
