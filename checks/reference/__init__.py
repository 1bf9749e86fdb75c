"""Render the knowledge as reference pages."""
