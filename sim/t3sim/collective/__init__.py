"""The ring: who sends which chunk to whom, how a unit is programmed for it, and what data it must leave."""
