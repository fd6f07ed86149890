"""Forms as every page draws them: Tabler's classes, errors beside the field, `{% include "_field.html" %}` for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from django import forms
from django.forms.utils import ErrorDict, flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

SELECTED = SafeString(" selected")
CLASSES: tuple[tuple[type[forms.Widget], str], ...] = (
    (forms.CheckboxInput, "form-check-input"),
    (forms.CheckboxSelectMultiple, "gk-check"),
    (forms.RadioSelect, "gk-check"),
    (forms.Select, "form-select"),
)


class Styled(forms.BaseForm):
    """Mix in before any form: `class SomeForm(Styled, forms.Form)`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        for field in self.fields.values():
            widget = field.widget
            widget.attrs["class"] = next((css for kind, css in CLASSES if isinstance(widget, kind)), "form-control")

    def unjudged(self) -> Self:
        """With what was typed so far, and without a word on what is missing: nobody has handed it in yet."""
        self._errors = ErrorDict()
        return self


class LongSelect(forms.Select):
    """A select box of a thousand options in one piece: Django renders each by a template of its own."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        chosen = set(map(str, self.format_value(value) or ()))
        options = ((pk, SELECTED if str(pk) in chosen else "", label) for pk, label in self.choices)
        inner = format_html_join("", '<option value="{}"{}>{}</option>', options)
        whole = self.build_attrs(self.attrs, {**(attrs or {}), "name": name})
        return format_html("<select{}>{}</select>", flatatt(whole), inner)


class Checks(forms.CheckboxSelectMultiple):
    """Boxes to tick, in one piece for the same reason."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        widget = self.get_context(name, value, attrs)["widget"]
        boxes = format_html_join("", "<div><label{}><input{}> {}</label></div>", map(_box, _options(widget)))
        outer = {key: widget["attrs"][key] for key in ("id", "class") if key in widget["attrs"]}
        return format_html("<div{}>{}</div>", flatatt(outer), boxes)


def _options(widget: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for _group, options, _index in widget["optgroups"]:
        yield from options


def _box(option: dict[str, Any]) -> tuple[SafeString, SafeString, Any]:
    said = {"type": option["type"], "name": option["name"], "value": str(option["value"])}
    label = {"for": option["attrs"]["id"]} if "id" in option["attrs"] else {}
    return flatatt(label), flatatt(said | option["attrs"]), option["label"]
