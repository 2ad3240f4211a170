"""Pure decisions: no I/O, no clock, no chance. Everything they need comes in as arguments."""
