"""Measurements behind the published figures."""
