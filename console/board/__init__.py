"""The live board. Control calls `publish()` after each whole tick; the hub of each web process hands it on.

What a browser (or a check with a plain WebSocket client and a session cookie) receives at `/live/board`, JSON text:

    {"t": "board",             # always
     "v": 1795949446201,       # +1 a message; a gap means: fetch `/board/hosts` again
     "at": 1795949446.2,       # time of the numbers, seconds since the epoch
     "whole": false,           # true: `cards` has every card of the scope (sent on connect), false: only what changed
     "layout": "9a3c01ff",     # differs from the page's: cards came or went, fetch `/board/hosts` again
     "keys": [["used", "62.0", "%", "1,490 / 2,405 GiB", false], ...],  # name, value, unit, line below, red
     "states": {"": 32, "pressure": 1, ...},  # how many cards each filter of state would show
     "cards": {"5": {          # Card.id
        "h": "1f0a33c2",       # shape: differs from the tile's: fetch `/board/cards/5` again
        "m": [14540, 2048, ...],   # MiB of the segments in the order drawn; the sum is the card's total
        "u": 59187,            # measured MiB in use, or null
        "l": 48,               # load in percent, or null
        "p": 812,              # worst P99 in ms of the replicas that the scope may see, or null
        "r": [[12, 3, "ready", 2, null], ...]}}}   # replica id, service id, phase, in flight, progress 0..1

`r` has the replicas the scope may see. The version jumps when control restarts, which is a gap like any other.
For a tenant only the cards it has replicas on are there, a foreign replica is one number in `m` and nothing else.
The same as one message: `GET /board/numbers` (polled by the page while the socket is down).
"""

from __future__ import annotations

from console.board.messages import numbers
from console.board.publisher import publish

__all__ = ["numbers", "publish"]
