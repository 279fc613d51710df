"""Languages without vocabulary, model or request: every constraint becomes the one form of `ir`."""
