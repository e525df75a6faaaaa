"""What the vault remembers of the records that it shares, and what its tables say of each of them."""
