"""Absences move here with the table that `requests` made: administrators of companies have deputies too."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_applications"),
        ("requests", "0003_absences_are_peoples"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Absence",
                    fields=[
                        ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                        ("starts_at", models.DateTimeField()),
                        ("until", models.DateTimeField()),
                        ("made_at", models.DateTimeField(auto_now_add=True)),
                        ("ended_at", models.DateTimeField(help_text="back earlier", null=True)),
                        (
                            "person",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="absences",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "deputy",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="deputised",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "ordering": ("-id",),
                        "db_table": "requests_absence",
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("person", models.F("deputy")), _negated=True),
                                name="nobody_is_their_own_deputy",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("until__gt", models.F("starts_at"))), name="an_absence_lasts"
                            ),
                        ],
                    },
                ),
            ],
        ),
    ]
