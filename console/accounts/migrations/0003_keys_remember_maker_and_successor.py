import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0002_people_choose_language_and_change_first_passwords"),
    ]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="created_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="followed_by",
            field=models.OneToOneField(
                blank=True,
                help_text="the key it was rotated to",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="follows",
                to="accounts.apikey",
            ),
        ),
    ]
