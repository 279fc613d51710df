"""What proposes the next tokens of a sequence before the model is asked."""
