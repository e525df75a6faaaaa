"""A team's memory on PostgreSQL: each device writes a log of its own there and follows those of the others."""
