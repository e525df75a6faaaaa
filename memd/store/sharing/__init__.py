"""The vault's registers of the records that it shares, and the state of each in the vault's tables."""
