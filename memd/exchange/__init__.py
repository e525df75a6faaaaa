"""In from elsewhere, out to elsewhere: transcripts of the past."""
