"""What a model's input and output mean."""
