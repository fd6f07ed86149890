"""A model changed by hand: saved over what the page showed, and marked as typed by a person."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from console.catalog.models import Model
from console.catalog.weights import folder
from console.catalog.weights.problem import Unreadable
from console.forms import Styled
from console.model_pages.numbers import by_hand
from console.model_pages.words import FIELDS, problem


def clean_path(path: str) -> str:
    """Raises ValidationError for one that could leave the folder of weights."""
    try:
        folder.check(path)
    except Unreadable as why:
        raise ValidationError(problem(why)) from None
    return path


class ModelForm(Styled, forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Model
        fields = tuple(FIELDS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, label in FIELDS.items():
            self.fields[name].label = label
            self.fields[name].help_text = ""
        self.was = {name: getattr(self.instance, name) for name in FIELDS}

    def clean_weights(self) -> str:
        return clean_path(self.cleaned_data["weights"])

    def write(self) -> bool | None:
        """Whether it was written; None: nothing differs. False: somebody changed it since the page was opened."""
        changed = [name for name in FIELDS if self.cleaned_data[name] != self.was[name]]
        if not changed:
            return None
        row = Model.objects.get(pk=self.instance.pk)
        if any(str(getattr(row, name)) != self.data.get(f"was-{name}", "") for name in changed):
            return False
        origins, still = by_hand(row, changed), {name: getattr(row, name) for name in FIELDS}
        written = {name: self.cleaned_data[name] for name in changed}
        return Model.objects.filter(pk=row.pk, **still).update(**written, origins=origins) == 1
