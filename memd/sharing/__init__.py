"""Memory on more than one machine: records, one merge, and transports: a user's sync targets, a team's server."""
