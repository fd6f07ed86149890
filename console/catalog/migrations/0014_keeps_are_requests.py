from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0013_batch_hours"),
        ("requests", "0002_keeps"),
    ]

    operations = [
        migrations.DeleteModel(name="Keep"),
    ]
