"""The colour of a company as a template filter: `{{ tenant|hue }}` gives the CSS classes of its mark."""

from __future__ import annotations

from django import template

from console.board.names import hue

register = template.Library()
register.filter("hue", hue)
