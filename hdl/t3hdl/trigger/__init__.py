"""The trigger: descriptors, blocks, ready lists, commands, watchdog."""
