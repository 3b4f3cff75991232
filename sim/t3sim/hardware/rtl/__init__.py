"""The RTL compiled into shared libraries."""
