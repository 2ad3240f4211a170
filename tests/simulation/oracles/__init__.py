"""What must hold in every world, each kind in a file of its own."""
