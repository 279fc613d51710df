"""Mathematics on logits, and the random numbers it needs: no request, no grammar, no model."""
