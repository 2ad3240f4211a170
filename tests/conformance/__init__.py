"""What the contract says and what went wrong elsewhere, each with the tests that hold us to it."""
