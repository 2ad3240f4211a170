"""One small module per noun: acts through the operator, answers 303."""
