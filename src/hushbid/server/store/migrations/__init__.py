"""The database's history: each version is a step from the one before, run when the server starts."""
