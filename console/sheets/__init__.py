"""Lists that come in as workbooks: read, shown beside what is there, and written all or not at all.

A kind of list is a `kind.Sheet`; the views here are the same for each. Whose rows they are is each kind's business.
"""
