"""The memory of one person on several machines: records, how they merge, and the places they travel by."""
