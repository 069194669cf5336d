"""`recipient` and `recipients`: the addresses of a body, in order."""

from app.api.requests.json_object import kind
from app.errors import InvalidAddress
from app.settings import Settings
from app.values.addresses import Address, is_costly, parse
from app.values.validation_errors import FaultsFound

COSTLY_CHARACTERS_MAX = 20_000


class CostLimit:
    """The limit of costly entries that are parsed once a list has so many faults that no more are named."""

    def __init__(self, faults: FaultsFound) -> None:
        self._faults = faults
        self._characters = 0

    def forbids(self, key: str, entry: str) -> bool:
        """Tell whether to skip the entry at `key`, and count it as skipped."""
        if not self._faults.list_is_full or not is_costly(entry):
            return False
        self._characters += len(entry)
        if self._characters <= COSTLY_CHARACTERS_MAX:
            return False
        self._faults.skip_entry(key)
        return True


def read_recipient(value: object, faults: FaultsFound) -> list[Address]:
    """Read `recipient`; with a fault, return nothing."""
    if not isinstance(value, str):
        faults.add("recipient", f"The recipient must be a string with an e-mail address, but is {kind(value)}.")
        return []
    try:
        return [parse(value)]
    except InvalidAddress as error:
        faults.add("recipient", f"The recipient {error.sentence}")
        return []


def read_recipients(value: object, faults: FaultsFound, settings: Settings) -> list[Address]:
    """Read `recipients`; return the addresses without a fault."""
    if not isinstance(value, list):
        faults.add("recipients", f"The recipients must be an array of e-mail addresses, but are {kind(value)}.")
        return []
    if len(value) > settings.recipients_max:
        faults.add(
            "recipients",
            f"There must be at most {settings.recipients_max} recipients, but there are {len(value)}.",
        )
    addresses = []
    first_places: dict[str, int] = {}
    limit = CostLimit(faults)
    # Entries over the limit are not parsed: a body of a million blanks must not cost a second.
    for place, entry in enumerate(value[: settings.recipients_max]):
        if not isinstance(entry, str):
            sentence = f"The entry must be a string with an e-mail address, but is {kind(entry)}."
            faults.add_entry(f"recipients.{place}", sentence)
            continue
        if faults.list_is_full and limit.forbids(f"recipients.{place}", entry):
            continue
        try:
            address = parse(entry)
        except InvalidAddress as error:
            faults.add_entry(f"recipients.{place}", f"The entry {error.sentence}")
            continue
        first = first_places.setdefault(address.key, place)
        if first != place and not settings.allow_repeats:
            faults.add_entry(f"recipients.{place}", f"The entry is the same address as recipients.{first}.")
        addresses.append(address)
    return addresses
