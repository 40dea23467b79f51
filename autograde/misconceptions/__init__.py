"""Wrong answers and what their authors need to hear, a module a chapter."""
