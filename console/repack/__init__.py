"""Repack: proposals of numbered moves, their approval, and what came of each."""
