"""The statement-boundary walk: one operation stopped before each statement, another run there."""
