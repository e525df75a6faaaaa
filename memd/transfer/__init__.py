"""In from elsewhere, out to elsewhere: transcripts of the past, what other memories know."""
