"""Tools: what a declaration means for grammar and reader alike."""
