"""The step that creates the tables, run when the server starts on an empty database."""
