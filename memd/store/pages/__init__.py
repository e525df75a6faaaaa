"""Queries for the lists and counts on the viewer's pages."""
