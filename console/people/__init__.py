"""Pages about companies, their people and their callers' keys. Views only: the tables belong to `console.accounts`."""
