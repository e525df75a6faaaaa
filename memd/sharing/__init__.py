"""Memory on more than one machine: records, one merge, and the ways they travel: a person's places, a team's server."""
