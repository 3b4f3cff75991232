"""The page of registers, as ``t3hdl.interface.rdl`` makes it from ``t3.rdl``."""

from t3hdl.interface.rdl import manual_page as page

from docs.pages import REFERENCE

__all__ = ["PAGE", "page"]

PAGE = REFERENCE / "registers.md"
