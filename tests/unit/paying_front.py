"""A service of one organization in this process, which remembers whom it paid; and `points send` run against it."""

import csv
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner, Result

from app.cli.send import send
from app.errors import PointsError

# That nobody was sent the same lately.
_NONE = dict.fromkeys(("recipients", "same", "same_label", "same_amount", "batch_count"), 0)
NOBODY = {"days": 30, **_NONE, "batches": [], "complete": True}

_VERIFIED = {"code": None, "required": 0, "available": 0, "affordable_recipients": 0}


class Done(NamedTuple):
    """What a run of the command came to; `document` is what `--json` prints, `told` what stands on standard error."""

    status: int
    document: dict[str, Any]
    told: str


class PayingFront:
    """Pays from `balance`, in order, and never twice under one key. `created_at` is when it says that it does."""

    def __init__(self) -> None:
        self.url = ""
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.balance = 2_000_000_000
        self.paid: list[str] = []
        self.points: list[int] = []  # Of each that was paid.
        self.erased: set[str] = set()  # Who was erased, and so is neither paid nor named.
        self.bodies: list[Any] = []  # Of each batch.
        self.amount_max = 1_000_000_000
        self.recipients_max = 10_000
        self.created_at = datetime.now(UTC).isoformat()
        self.refusal_of_part: int | None = None  # The number of a part that is refused when it is sent.
        self.interrupts = 0  # How often Ctrl-C is pressed before a send is answered.
        self._answers: dict[str, tuple[Any, dict[str, Any]]] = {}

    def run(self, path: Path, *options: str) -> Done:
        """Give the command in this process."""
        done = self._invoke(path, "--json", *options)
        if isinstance(done.exception, PointsError):
            return Done(1, {}, done.exception.sentence)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
        return Done(done.exit_code, json.loads(done.stdout) if done.stdout else {}, done.stderr)

    def shown(self, path: Path, *options: str) -> str:
        """Give the command as a person does, and return what it prints on standard output."""
        done = self._invoke(path, *options)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
        return done.stdout

    def _invoke(self, path: Path, *options: str) -> Result:
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            return CliRunner().invoke(send, [str(path), "--key", "pts_live_key", "--url", self.url, "--yes", *options])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def answer(self, path: str, body: Any, key: str | None) -> tuple[int, dict[str, Any], dict[str, str]]:
        if path == "/v1/organization":
            limits = {"recipients": self.recipients_max, "amount": self.amount_max, "body_bytes": 8_388_608}
            return 200, _envelope(self._organization(), limits=limits), {}
        if faults := self._faults(body):
            return _refused(400, faults)
        if path == "/v1/points/verify":
            return 200, _envelope({"validated": True, "error": None}, **_VERIFIED), {}
        assert key is not None, "every send has a key, and is asked about under it"
        return (200, _envelope(NOBODY), {}) if path == "/v1/points/sent-before" else self._sent(body, key)

    def _sent(self, body: Any, key: str) -> tuple[int, dict[str, Any], dict[str, str]]:
        with self._lock:
            if self.interrupts:
                self.interrupts -= 1
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            if key in self._answers:
                sent, answered = self._answers[key]
                self._erase(answered)
                is_same = _meaning(sent) == _meaning(body)
                return (201, answered, {"Idempotency-Replayed": "true"}) if is_same else _refused(422, {"key": ["No."]})
            if key.endswith(f"-{self.refusal_of_part}"):
                return _refused(403, {"organization": ["No."]})
            answered = self._issue(body, len(self._answers) + 1)
            self._answers[key] = body, answered
            self._erase(answered)
        return 201, answered, {}

    def _erase(self, answered: dict[str, Any]) -> None:
        for transaction in answered["data"]["transactions"]:
            if transaction["email"] in self.erased:
                transaction["email"] = "erased-5"

    def _faults(self, body: Any) -> dict[str, list[str]]:
        """Find too many recipients, an amount above the limit, and control totals that differ."""
        items = _items(body)
        if len(items) > self.recipients_max:
            field = "items" if "items" in body else "recipients"
            return {field: [f"There must be at most {self.recipients_max} {field}, but there are {len(items)}."]}
        if any(item["amount"] > self.amount_max for item in items):
            return {"amount": [f"The amount must be between 1 and {self.amount_max} points."]}
        found = {"recipients": len(items), "amount": sum(item["amount"] for item in items)}
        return {} if body.get("expect", found) == found else {"expect": [f"There are {found}."]}

    def _issue(self, body: Any, batch_id: int) -> dict[str, Any]:
        transactions, debited = [], True
        self.bodies.append(body)
        for place, item in enumerate(_items(body)):
            is_erased = item["email"] in self.erased
            # The first that the balance cannot pay ends the paying.
            if not is_erased and (debited := debited and self.balance >= item["amount"]):
                self.balance -= item["amount"]
                self.paid.append(item["email"])
                self.points.append(item["amount"])
            of_each = {"sandbox": False, "organization": self._organization(), "created_at": self.created_at}
            flags = {"debited": debited and not is_erased, "credited": False, "allocated": False}
            transactions.append({"id": batch_id * 1_000 + place, **item, **of_each, **flags})
        amount = sum(transaction["amount"] for transaction in transactions if transaction["debited"])
        data = {"transactions": transactions, "amount": amount, "current_balance": self.balance}
        return _envelope(data, batch_id=batch_id)

    def _organization(self) -> dict[str, Any]:
        about = {"id": 7, "name": "Acme", "is_disabled": False, "is_suspended": False, "created_at": self.created_at}
        return {**about, "balance": self.balance, "last_refill": None}


def _items(body: Any) -> list[dict[str, Any]]:
    """Return the items of a body, with its defaults."""
    one_or_many = body.get("recipients") or [body.get("recipient")]
    items = body.get("items") or [{"email": email} for email in one_or_many]
    return [{"amount": body.get("amount"), "label": body.get("label"), "reference": None, **item} for item in items]


def _meaning(body: Any) -> Any:
    return [body["atomic"], *({**item, "email": item["email"].lower()} for item in _items(body))]


def _refused(status: int, errors: dict[str, list[str]]) -> tuple[int, dict[str, Any], dict[str, str]]:
    return status, {"success": False, "data": None, "errors": errors, "additional_data": None}, {}


def _envelope(data: dict[str, Any], **additional: object) -> dict[str, Any]:
    return {"success": True, "data": data, "errors": None, "additional_data": {"version": "1.0", **additional}}


@contextmanager
def paying_front() -> Iterator[PayingFront]:
    front = PayingFront()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            status, document, headers = front.answer(self.path, body, self.headers.get("Idempotency-Key"))
            content = json.dumps(document).encode()
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(content))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        front.url = f"http://127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield front
        finally:
            server.shutdown()
            serving.join()


def result_of(people: Path) -> Path:
    """Return the result that `points send` writes beside a list."""
    return people.with_name(f"{people.stem}.result.csv")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
