"""Import and export: past transcripts, memories of other programs, and whole vaults."""
