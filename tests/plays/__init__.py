"""The core played over minutes and hours of a small farm, and its searches: seconds of work, apart from its rules."""
