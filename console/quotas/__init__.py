"""Quotas on pages: who was promised what of which pool, who uses it, and what a change would do."""
