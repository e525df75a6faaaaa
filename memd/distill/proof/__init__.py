"""Which commands failed, and what proves that a failure was fixed."""
