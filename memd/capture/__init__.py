"""What agents say, on its way in: adapted, bounded, redacted, stored once, acknowledged after commit."""
