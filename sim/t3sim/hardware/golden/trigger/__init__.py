"""The golden model of the trigger."""
