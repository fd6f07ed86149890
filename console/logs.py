"""How errors of others are written down."""

from __future__ import annotations

import logging


class OneLine(logging.Formatter):
    """Without the traceback: the channel layer logs one a second while Redis is away."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        plain = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None})
        return super().format(plain) + (f": {type(error).__name__}" if error is not None else "")


class Refusals(logging.Filter):
    """A page refused (403, 404) is one line: thirty of traceback each would let anybody fill the disk."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.ERROR:
            record.exc_info = record.exc_text = None
        return True
