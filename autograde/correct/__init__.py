"""Right answers of every form, a module a chapter: all must be accepted."""
