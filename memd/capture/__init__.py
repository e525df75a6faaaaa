"""Capture of agents' events: adapted, bounded, redacted, stored once, acknowledged after commit."""
