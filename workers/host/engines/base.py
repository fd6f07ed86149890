"""What every kind of engine needs."""

from __future__ import annotations

from pathlib import Path

#: The folder from which our own modules are imported.
ROOT = Path(__file__).resolve().parents[3]


class Refused(ValueError):
    """This engine cannot be started. `code` is the typed fault, `fatal`: another card would not help."""

    def __init__(self, code: str, text: str, fatal: bool = True) -> None:
        super().__init__(text)
        self.code, self.text, self.fatal = code, text, fatal
