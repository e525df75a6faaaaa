"""Context that an agent is given unasked, and requests to it to note something."""
