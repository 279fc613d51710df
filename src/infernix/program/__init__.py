"""Physical sequences and their execution."""
