"""`points migrate`: brings the database up to date."""

import click

import migrations
from app.cli.answer import Answer, data_dir_option, json_option
from app.cli.operator import say_that_it_is_new
from app.cli.reach import database_in_reach
from app.local import servers
from app.local.datadir import DataDir
from app.local.interrupts import end_gently
from app.local.postgresql import PostgreSQL


@click.command()
@json_option
@data_dir_option
def migrate(as_json: bool, data_dir: str) -> None:
    """Bring the database up to date. Two at once are safe; up to date already is fine."""
    end_gently()  # However it is ended, no server of ours is left behind.
    datadir = DataDir(data_dir)
    is_new = not PostgreSQL(datadir).is_initialised()
    with servers.database(datadir) as embedded:
        if embedded and is_new:
            say_that_it_is_new(datadir)
        servers.name_servers(datadir)
        with database_in_reach():
            migrations.bring_up_to_date()
            revision = migrations.revision()
    newer = "" if revision == migrations.newest() else f", later than this release's {migrations.newest()}"
    answer = Answer({"revision": revision}, sentence=f"The database is at revision {revision}{newer}.")
    answer.print(as_json=as_json)
