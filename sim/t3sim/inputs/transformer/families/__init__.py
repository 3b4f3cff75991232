"""Configurations of the Hugging Face format, family by family."""
