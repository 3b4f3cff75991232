"""What pages share: Markdown, and what a page says of the hardware that was measured."""
