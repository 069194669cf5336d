"""`points up`: the whole service in one terminal."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial

import click

import migrations
from app.cli import demo
from app.cli.operator_command import database_in_reach
from app.cli.options import data_dir_option
from app.errors import Refused
from app.local import parts, ports, servers
from app.local.datadir import RUNNING_FILE, DataDir
from app.local.postgresql import PostgreSQL
from app.local.supervisor import Supervisor
from app.local.terminal import Terminal, ask_gently, end_gently
from app.local.valkey import Valkey
from app.postgres.connections import engine
from app.settings import MAIL_TO_LOG, settings, without_password

_VALKEY_TIMEOUT_S = 30.0
_READY_TIMEOUT_S = 90.0
_LOOK_EVERY_S = 0.2


@click.command()
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="HTTP port.")
@click.option("--flower-port", default=5555, show_default=True, type=click.IntRange(1, 65535), help="Flower's port.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Celery workers.")
@data_dir_option
def up(port: int, flower_port: int, workers: int, data_dir: str) -> None:
    """Run the whole service in this terminal until Ctrl-C.

    Starts an embedded PostgreSQL and Valkey unless DATABASE_URL and REDIS_URL are set, brings the
    database up to date, and runs web, workers, beat and Flower. A part that dies is started again. On
    the first start a demo organization is made with a member, and a first batch is issued for it.
    """
    if port == flower_port:
        raise click.UsageError(f"--port and --flower-port are both {port}: web and Flower need one each.")
    datadir = DataDir(data_dir)
    datadir.create()
    only_one = datadir.try_lock("up.lock")
    if only_one is None:
        running = datadir.read(RUNNING_FILE)
        raise Refused(f"The service runs from {datadir.path} already, as process {running.get('pid', '?')}.")
    terminal = Terminal(sys.stdout)
    supervisor = Supervisor(datadir, terminal.show)
    ask_gently(supervisor.ask_to_stop)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    with only_one, closing(terminal):
        with ExitStack() as in_use:  # Until everything is stopped.
            try:
                with suppress(KeyboardInterrupt):  # An interrupt during a wait of the start.
                    _start(datadir, supervisor, terminal, in_use, port=port, flower_port=flower_port, workers=workers)
                    supervisor.watch(until=lambda: False)
                terminal.show("\nStopping …")
            finally:
                supervisor.stop()
        terminal.show("Everything is stopped.")


def _start(
    datadir: DataDir,
    supervisor: Supervisor,
    terminal: Terminal,
    in_use: ExitStack,
    *,
    port: int,
    flower_port: int,
    workers: int,
) -> None:
    """Start everything, and show what runs and where.

    Raises:
        KeyboardInterrupt: an interrupt came during a wait.
    """
    web_url = f"http://{ports.HOST}:{port}"
    os.environ.setdefault("POINTS_PUBLIC_URL", web_url)
    os.environ.setdefault("POINTS_SMTP_URL", MAIL_TO_LOG)
    with _no_command_at_work(datadir, supervisor, terminal):
        supervisor.end_leftovers()
        ports.require_free(port, option="--port")
        ports.require_free(flower_port, option="--flower-port")
        lock = datadir.try_lock("use.lock", shared=True)
        assert lock is not None, "the exclusive form is only ever held under start.lock, and so is this"
        in_use.enter_context(lock)
        _start_servers(datadir, supervisor)
    with _interruptible(supervisor), database_in_reach():
        migrations.bring_up_to_date()
    # They are stopped in the reverse order, Flower and web first, so that no call waits for a worker that has stopped.
    for number in range(1, workers + 1):
        supervisor.start(parts.worker(number))
    supervisor.start(parts.deliveries())
    supervisor.start(parts.beat())
    supervisor.start(parts.web(port))
    supervisor.start(parts.flower(flower_port, datadir.password("flower"), datadir.path / "flower"))
    flower_url = f"http://{ports.HOST}:{flower_port}"
    datadir.update(RUNNING_FILE, web_url=web_url, flower_url=flower_url)
    is_ready = partial(ports.answers, f"{web_url}/readyz")
    _keep_running_until(supervisor, is_ready, within_s=_READY_TIMEOUT_S, else_="The service was not ready")
    if not supervisor.is_stopping:
        terminal.show(_introduction(datadir, web_url=web_url, flower_url=flower_url))


@contextmanager
def _interruptible(supervisor: Supervisor) -> Iterator[None]:
    """Let an interrupt end the block at once. For blocks that only wait: no part may be started in it."""
    end_gently()
    try:
        if supervisor.is_stopping:
            raise KeyboardInterrupt
        yield
    finally:
        ask_gently(supervisor.ask_to_stop)


@contextmanager
def _no_command_at_work(datadir: DataDir, supervisor: Supervisor, terminal: Terminal) -> Iterator[None]:
    """Wait for the commands that use the embedded database, and let no other begin, because it will be restarted.

    Raises:
        Refused: Ctrl-C came first.
    """
    has_said_so = False
    while True:
        with datadir.locked("start.lock"):
            if supervisor.is_stopping:
                raise Refused("Interrupted. Nothing was started.")
            if (alone := datadir.try_lock("use.lock")) is not None:
                alone.close()
                yield
                return
        if not has_said_so:
            terminal.show("Waiting for a command that uses the database …")
            has_said_so = True
        time.sleep(_LOOK_EVERY_S)


def _start_servers(datadir: DataDir, supervisor: Supervisor) -> None:
    """Start the embedded servers that the environment does not replace.

    Raises:
        SettingsError: a setting is wrong; no server was started.
    """
    server = None if "DATABASE_URL" in os.environ else PostgreSQL(datadir)
    cache = None if "REDIS_URL" in os.environ else Valkey(datadir)
    if server is not None:
        server.stop()  # One may be left by a supervisor or a command that was killed.
        server.prepare()
    if cache is not None:
        cache.prepare()
    servers.name_servers(datadir, makes_key=True)
    settings()
    if server is not None:
        supervisor.start(parts.postgresql(server))
        with _interruptible(supervisor):
            server.wait_until_ready()
    if cache is not None:
        supervisor.start(parts.valkey(cache))
        _keep_running_until(  # A Valkey that cannot read its data is started again without it.
            supervisor,
            partial(cache.answers, within_s=_LOOK_EVERY_S),
            within_s=_VALKEY_TIMEOUT_S,
            else_="The embedded Valkey did not answer",
        )


def _keep_running_until(supervisor: Supervisor, condition: Callable[[], bool], *, within_s: float, else_: str) -> None:
    """Restart parts that die until `condition()` is true or a stop is requested.

    Raises:
        Refused: it is not true in time; `else_` begins the sentence.
    """
    deadline = time.monotonic() + within_s
    supervisor.watch(until=lambda: condition() or time.monotonic() > deadline)
    if not supervisor.is_stopping and time.monotonic() > deadline:
        raise Refused(f"{else_} within {within_s:.0f} s; its output above says why.")


def _introduction(datadir: DataDir, *, web_url: str, flower_url: str) -> str:
    keys, first_batch = demo.prepare(datadir, web_url)
    engine().dispose()  # Nothing here uses the database again, and it would log an unclosed connection.
    lines = [
        "",
        "The Points Issuing Service is running.",
        f"  HTTP      {web_url}",
        f"  Docs      {web_url}/docs",
        f"  Console   {web_url}/console",
        f"  Flower    {flower_url}   user {parts.FLOWER_USER}, password {datadir.password('flower')}",
        f"  Database  {without_password(settings().database_url)}",
        f"  Redis     {without_password(settings().redis_url)}",
    ]
    if keys is not None:
        lines += ["", *demo.describe(keys, first_batch, web_url)]
    lines += ["", "Ctrl-C stops everything.", ""]
    return "\n".join(lines)
