"""The operator's console: reads the monitor, acts through the operator."""
