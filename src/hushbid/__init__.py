"""Hushbid."""
