"""`points`: the commands of the people who run the service. One file a group, one answer a command."""

import sys

import click

from app.cli import audit, keys, migrate, organizations, status, up, users
from app.errors import PointsError
from app.settings import SettingsError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="points-issuing-service", prog_name="points")
def points() -> None:
    """Issue loyalty points to lists of recipients.

    DATABASE_URL, REDIS_URL and the POINTS_… settings come from the environment. With neither URL set,
    every command uses the embedded servers of the data directory, running or not.
    """


for command in (
    up.up,
    status.status,
    migrate.migrate,
    organizations.organizations,
    keys.keys,
    users.users,
    audit.audit,
):
    points.add_command(command)


def main() -> None:
    """Run a command; an expected error is one sentence on standard error, with exit status 1."""
    try:
        points(prog_name="points")
    except PointsError as error:
        sys.exit(f"points: {error.sentence}")
    except SettingsError as error:
        sys.exit(f"points: {error}")
