"""From a board and a configuration to a bitstream."""
