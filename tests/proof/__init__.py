"""`make prove`: instrument after instrument towards the figures, every run written down."""
