"""The engine behind the protocols that people's programs already speak."""
