"""What a user's message means as an answer to what the agent said before it."""
