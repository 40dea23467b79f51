"""What must be true of a student's function, a module a chapter."""
