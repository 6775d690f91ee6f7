"""Where everything is kept: SQL stops here. Functions take a connection and plain values, and return plain values."""
