"""Pages of the catalogue: what each model is, where every number came from, and reading it anew from its files."""
