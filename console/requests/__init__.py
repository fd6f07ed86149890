"""Requests: people ask, others decide on what it does, it takes effect and ends by itself. One engine, many kinds."""
