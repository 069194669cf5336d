"""What the parts of a run of `points send` came to, added up."""

from dataclasses import dataclass

from app.cli.send.service import Issued


@dataclass(kw_only=True)
class Totals:
    """What the parts sent so far came to; `points` are those debited."""

    batches: int = 0
    replayed: int = 0
    points: int = 0
    debited: int = 0
    credited: int = 0
    current_balance: int | None = None

    @property
    def held(self) -> int:
        return self.debited - self.credited

    def add(self, issued: Issued) -> None:
        self.batches += 1
        self.replayed += issued.replayed
        for transaction in issued.transactions:
            if transaction["debited"]:
                self.points += transaction["amount"]
                self.debited += 1
                self.credited += transaction["credited"]
        self.current_balance = issued.current_balance
