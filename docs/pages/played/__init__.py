"""Pages whose commands or code run again, so that what they show is what is computed today."""
