"""Hosts: the list, one host, and what an operator may do with it."""
