"""See cupy beside this."""
