"""Policies tried on the last seven days: the recorded past, the job that simulates it, and the page of the result."""
