"""What is told to an agent unasked, and what it is asked to note."""
