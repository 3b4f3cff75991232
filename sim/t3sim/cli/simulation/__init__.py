"""Commands that simulate one sublayer, and the options that they share."""
