"""One module per page: reads the monitor, renders a template."""
