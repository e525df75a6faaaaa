"""The title of a piece of work, chosen among its own sentences by a small learned ranker."""
