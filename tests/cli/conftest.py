"""The played engine, for all tests of commands."""

from support.played_engine import stage

__all__ = ["stage"]
