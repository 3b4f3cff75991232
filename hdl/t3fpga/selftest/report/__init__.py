"""What a board tells its user: UART report, failures, the button."""
