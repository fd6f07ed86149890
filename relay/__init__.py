"""The pooled upstream client of gateway and door: no Django, no console, no workers."""

from relay.address import Address
from relay.client import Client, Response
from relay.connection import Broken, Malformed, RelayError, TooSlow, Unreachable

__all__ = ["Address", "Broken", "Client", "Malformed", "RelayError", "Response", "TooSlow", "Unreachable"]
