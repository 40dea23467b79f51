"""Measurements of what the course claims: `make bench`, or `python -m bench NAME`."""
