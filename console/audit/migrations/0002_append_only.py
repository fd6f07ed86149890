from django.db import migrations

from console.audit.append_only import guard, unguard


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_entry")]
    operations = [
        migrations.RunPython(
            lambda apps, editor: guard(editor.connection), lambda apps, editor: unguard(editor.connection)
        )
    ]
