"""What all budgets share: a number a month in a row of its own, put in force, and put back where it still is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Model
from django.http import QueryDict

from console.accounts.models import Role, User
from console.requests.kind import AskForm, Kind, Stale
from console.requests.models import Request


class Limit(Kind):
    """`rows`, `column`: where the number stands; `told`: what the audit calls it; `fields`: the form."""

    askers = frozenset({Role.OPERATOR, Role.TENANT_ADMIN})
    rows: type[Model]
    column: str
    told: str
    fields: type[AskForm]

    def names(self, row: Request) -> Mapping[str, Any] | None:
        """What names its row; None: what it was for is gone."""
        raise NotImplementedError

    def limit(self, row: Request) -> int:
        """The number that is asked for."""
        raise NotImplementedError

    def form(self, person: User, data: QueryDict | None, initial: Mapping[str, Any]) -> AskForm:
        return self.fields(person, data, initial={"tenant": person.tenant_id, **initial})

    def standing(self, row: Request) -> Any:
        """The row as it is; None: there is none."""
        names = self.names(row)
        return None if names is None else self.rows._default_manager.filter(**names).first()

    def now(self, row: Request) -> int | None:
        found = self.standing(row)
        return None if found is None else getattr(found, self.column)

    def apply(self, row: Request, now: datetime) -> dict[str, Any]:
        names, before, limit = self.names(row), self.now(row), self.limit(row)
        if names is None:
            raise Stale("service_gone")
        self.rows._default_manager.update_or_create(**names, defaults={self.column: limit})
        return {"before": {self.told: before}, "after": {self.told: limit}}

    def end(self, row: Request, now: datetime) -> None:
        before, standing = row.undo["before"][self.told], self.standing(row)
        if standing is None:
            return
        mine = self.rows._default_manager.filter(pk=standing.pk, **{self.column: self.limit(row)})
        if before is None:
            mine.delete()
        else:
            mine.update(**{self.column: before})
