"""Faults of the way to the servers: cut at a COMMIT, slow, silent, or closed."""

from tests.crash.proxy import Proxy
from tests.crash.scene import Scene


def the_connection_is_cut_after_commit_was_sent(scene: Scene) -> None:
    """PostgreSQL has committed, and whoever asked it to is never told."""
    _cut_some(scene, "cut_answer")


def the_connection_is_cut_before_commit_arrives(scene: Scene) -> None:
    """PostgreSQL rolls back, and for whoever asked it to commit this looks like the case above."""
    _cut_some(scene, "cut_commit")


def _cut_some(scene: Scene, word: str) -> None:
    proxy = _to_postgresql(scene)
    every = scene.random.randint(3, 9)
    wanted = proxy.tell(word, every) + scene.random.randint(1, 8)
    scene.wait_for("a COMMIT is cut off", lambda: proxy.tell(word, every) >= wanted)
    proxy.tell("forward")


def the_connections_are_slow(scene: Scene) -> None:
    for proxy in scene.service.proxies.values():
        proxy.tell("delay", round(scene.random.uniform(0.02, 0.2), 3))
    scene.lasts(1, 2)
    for proxy in scene.service.proxies.values():
        proxy.tell("forward")


def postgresql_is_a_black_hole(scene: Scene) -> None:
    proxy = _to_postgresql(scene)
    proxy.tell("hole")
    scene.lasts(0.5, 3)
    _end(scene, proxy)


def redis_is_a_black_hole(scene: Scene) -> None:
    proxy = _to_redis(scene)
    proxy.tell("hole")
    scene.send_is_taken()
    scene.lasts(0, 2)
    _end(scene, proxy)


def postgresql_refuses_connections(scene: Scene) -> None:
    proxy = _to_postgresql(scene)
    proxy.tell("refuse")
    proxy.tell("drop")
    scene.lasts(0.3, 2)
    proxy.tell("forward")


def redis_refuses_connections(scene: Scene) -> None:
    proxy = _to_redis(scene)
    proxy.tell("refuse")
    proxy.tell("drop")
    scene.send_is_taken()
    proxy.tell("forward")


def connections_to_postgresql_fall_silent_for_good(scene: Scene) -> None:
    """What is connected now is never answered again and never closed; who connects anew finds all well."""
    _to_postgresql(scene).tell("silence")


def connections_to_redis_fall_silent_for_good(scene: Scene) -> None:
    _to_redis(scene).tell("silence")
    scene.send_is_taken()


def _end(scene: Scene, proxy: Proxy) -> None:
    """A black hole ends in one of two ways: what it has swallowed arrives after all, or every connection breaks."""
    if scene.random.random() < 0.5:
        proxy.tell("drop")
    proxy.tell("forward")


def _to_postgresql(scene: Scene) -> Proxy:
    return scene.service.proxies["DATABASE_URL"]


def _to_redis(scene: Scene) -> Proxy:
    return scene.service.proxies["REDIS_URL"]
