"""Stories of the field, played on the running demo: `make scene S02`, or `python -m demo.scenes S02 [--home DIR]`.

One file a story; `SCENES` in `play.py` is the list. A scene says what to look at and what it waits for, and undoes what
it changed, whatever ends it.
"""
