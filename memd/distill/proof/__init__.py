"""Commands that failed, and proof that a failure was fixed."""
