"""What the pages of a viewer list and count."""
