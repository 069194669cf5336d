"""`points migrate`: brings the database up to date."""

from functools import partial

import click

import migrations
from app.cli.answer import Answer
from app.cli.operator_command import operator_command


@click.command()
@partial(operator_command, makes_data=True, migrates=True)
def migrate() -> Answer:
    """Bring the database up to date. It is safe to run this twice, also at the same time."""
    revision = migrations.revision()
    newer = "" if revision == migrations.newest() else f", later than this release's {migrations.newest()}"
    return Answer({"revision": revision}, sentence=f"The database is at revision {revision}{newer}.")
