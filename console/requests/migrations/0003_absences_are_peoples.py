"""The model is now `accounts.Absence`; the table stays where it is, with its rows."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("requests", "0002_keeps"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel("Absence")]),
    ]
