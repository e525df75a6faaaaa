"""Deduplicate, judge, remember, forget and retain memories."""
