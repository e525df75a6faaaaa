"""`memd team`: a team's memory on PostgreSQL."""
