"""What a turn achieved, in a title and a body that say it first."""
