"""What waits for somebody to look at it: advice to approve, notices of what is about to happen."""
