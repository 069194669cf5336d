"""Makes `points_client/_async/nouns.py`: a method for each call, from the service's description."""

import json
import re
from collections.abc import Iterator

from client.described import (
    Schema,
    annotation,
    answers,
    body_of,
    calls,
    class_of,
    docstring,
    is_page,
    named,
    prose,
    rows_of,
)

# Each class with its methods, and the call that each makes.
NOUNS = {
    "Own": """organization=showOrganization reset_sandbox=resetSandbox verify=verify sent_before=sentBefore send=send
        verify_reverse=verifyReverse reverse=reverse""",
    "Batches": """get=showBatch list=listBatches recipients=listRecipients wait=showBatch approve=approveBatch
        reject=rejectBatch cancel=cancelBatch reschedule=rescheduleBatch""",
    "Transactions": "get=showTransaction list=listTransactions extend=extendTransaction",
    "Reversals": "get=showReversal list=listReversals wait=showReversal",
    "Requests": "list=listRequests",
    "Webhooks": """create=createWebhook list=listWebhooks get=showWebhook update=changeWebhook delete=deleteWebhook
        ping=pingWebhook rotate=rotateWebhook disable=disableWebhook enable=enableWebhook replay=replayWebhook
        skip=skipWebhook deliveries=listDeliveries""",
    "Rehearsing": "set_clock=setSandboxClock register=registerSandboxUser",
    "Actions": "actions=listActions",
    "Users": """register=registerUser register_many=registerUsers get=showUser list=listUsers entries=listEntries
        change=changeUser erase=eraseUser""",
    "Organizations": """create=createOrganization get=showAnyOrganization list=listOrganizations
        change=changeOrganization refill=refill refills=listRefills create_key=createKey keys=listKeys
        revoke_key=revokeKey add_member=createMember members=listMembers link_member=linkMember
        remove_member=removeMember""",
}
_ABOUTS = {
    "Own": "Calls about the organization of the key, and those that move its points.",
    "Actions": "Calls about the whole platform.",
    "Rehearsing": "`points.rehearsing`: for development keys only.",
    "Users": "`platform.users`.",
    "Organizations": "`platform.organizations`.",
}
_MAY_BE_GONE = {"deleteWebhook": "A missing webhook is not an error: an earlier try may have removed it."}
_STAYS = {"changeWebhook": 'What is None stays as it is; `description=""` clears it.'}  # Of other changes, None clears.
# Doing these twice is not the same, so they are tried again only where they were surely not done.
_NOT_TWICE = {"pingWebhook", "skipWebhook", "setSandboxClock"}
# These have a key only if the caller has one: repeating them changes nothing.
_NEEDS_NO_KEY = {"sentBefore", "registerUser", "registerUsers", "registerSandboxUser"}
_WITH_OUTCOME = {"send": "of_send", "reverse": "of_reverse"}  # What they make is waited for.
_BY_PLACE, _BY_NAME = {"last_name", "name"}, {"role", "reverse.reason", "verifyReverse.reason"}  # Else: what must be.
_TYPES = {
    "items": "Iterable[AnyItem] | None = None",
    "transactions": "Iterable[int] | None = None",
    "users": "Iterable[results.NewUser]",
    "expect": "Mapping[str, int] | None = None",
    "listRequests.status": "int | str | None = None",
}
_ARGUMENTS = {
    "recipients": "1 to 10,000 addresses, which each get `amount` points; or, in their place, `items`.",
    "items": "1 to 10,000 recipients with their own amounts, labels or references.",
    "expect": '`{"recipients": …, "amount": …}`, either or both. If they differ, it is `Invalid`.',
    "idempotency_key": "1 to 255 visible ASCII characters that name the call. If you store it first, you can repeat the"
    " call after a crash of your program. Without one, a new key is made for the tries of this call.",
    **dict.fromkeys(
        ("registerUser.idempotency_key", "registerUsers.idempotency_key", "registerSandboxUser.idempotency_key"),
        "Needed only to be answered as the first call was.",
    ),
    "reverse.expect": '`{"recoverable": …}`: if another sum would come back, nothing is taken.',
    "verifyReverse.expect": '`{"recoverable": …}`: what you believe comes back.',
    "sentBefore.idempotency_key": "The one that the send will have. A batch that has it already does not count, because"
    " the send would be answered with that batch.",
    "wait_s": "Seconds to wait until it is done, over all tries; 0: do not wait. After that, what is accepted is"
    " returned with the `status` `queued`: it will be done once.",
}
_REFUSED = {"403": "NotAllowed", "404": "NotFound", "409": "Conflict", "410": "Gone", "422": "Invalid"}
_REFUSED |= {"503": "NoAnswer"}
_ALWAYS = {"WrongKey", "NotAllowed", "Away"}  # What any call may be refused for.
_OPENING = '''"""The calls of the service, noun by noun: made by `make_calls.py` from /openapi.json.

Every call may raise a `PointsError`: `Invalid`, `NotAuthorized`, `Refused`, or `NoAnswer`; and a `ValueError` for an id
that is none or a moment without a zone. Amounts are whole points. A list goes on over all pages, of `page_size` rows.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Unpack

from points_client import results
from points_client._async.calling import AsyncNoun, rows_of
from points_client._async.sending import posted, until_final
from points_client.outcomes import of_reverse, of_send
from points_client.requests import WAIT_S, AnyItem, Call, body, key_of, listed, path, query, send_body
'''


def text() -> str:
    """Return the module."""
    of = {operation["operationId"]: _Call(verb, path, operation) for verb, path, operation in calls()}
    classes = []
    for noun, methods in NOUNS.items():
        about = docstring(_ABOUTS.get(noun, f"`points.{noun.lower()}`."), indent="    ")
        pairs = [pair.split("=") for pair in methods.split()]
        texts = [of[call].wait() if name == "wait" else of[call].method(name) for name, call in pairs]
        classes.append("\n".join([f"class Async{noun}(AsyncNoun):\n{about}", *texts]))
    return "\n\n".join([_OPENING, *classes])


class _Call:
    """A call, and its parts as Python."""

    def __init__(self, verb: str, path: str, operation: Schema) -> None:
        self._verb, self._operation, self._name = verb, operation, operation["operationId"]
        self._answers = answers(operation)
        parts = re.split(r"/(?=\{)|(?<=\})/", path.removeprefix("/v1/"))
        self._ids = [_argument(noun, part) for noun, part in zip(parts[::2], parts[1::2], strict=False)]
        noun_and_id = [f'"{part}"' if place % 2 == 0 else self._ids[place // 2] for place, part in enumerate(parts)]
        self._where = f"path({', '.join(noun_and_id)})" if self._ids else f'"{path}"'
        self._fields, self._required = body_of(operation)
        self._fields.pop("recipient", None)  # One of `recipients`.
        self._query = {each["name"]: each for each in operation["parameters"] if each.get("in") == "query"}
        self._is_list = bool(self._answers) and is_page(self._answers[0][0])
        self._has_key = any(each.get("$ref", "").endswith("/Idempotency-Key") for each in operation["parameters"])
        self._takes_changes = verb == "PATCH" and not self._required and self._name not in _STAYS

    def method(self, name: str) -> str:
        """Return the method of this name."""
        if self._verb == "DELETE":
            gone = ", may_be_gone=True" * (self._name in _MAY_BE_GONE)
            return self._text(f"async def {name}", "None", f"await self._caller.delete({self._where}{gone})")
        data = self._answers[0][0]
        rows = rows_of(data)
        if rows is not None and self._is_list:
            given = [f"{name}={name}" for name in self._filters()] + ["limit=page_size"] * ("limit" in self._query)
            kind, asked = f"results.{class_of(rows[1])}", f"asked = query({', '.join(given)})"
            code = f'return self._caller.rows({kind}, {self._where}, "{rows[0]}", asked)'
            return self._text(f"def {name}", f"AsyncIterator[{kind}]", asked, code)
        if rows is not None:
            kind = f"results.{class_of(rows[1])}"
            code = f'return await self._caller.call(call, partial(rows_of, {kind}, "{rows[0]}"))'
            return self._text(f"async def {name}", f"tuple[{kind}, ...]", f"call = {self._call()}", code)
        kind = class_of(data)
        if self._name in _WITH_OUTCOME:
            call = f"outcome = {_WITH_OUTCOME[self._name]}({self._body()}, key_of(idempotency_key), wait_s)"
            code = "return await posted(self._caller, outcome)"
            return self._text(f"async def {name}", f"results.{kind}", call, code)
        call, answer = f"call = {self._call()}", f"await self._caller.answer(results.{kind}, call{self._known(kind)})"
        fields = named(data)["properties"]
        if len(fields) > 1:
            return self._text(f"async def {name}", f"results.{kind}", call, f"return {answer}")
        [(field, schema)] = fields.items()  # An answer that is one field alone.
        return self._text(f"async def {name}", annotation(schema), call, f"return ({answer}).{field}")

    def wait(self) -> str:
        """Return the method that looks until the answer is final."""
        kind = class_of(self._answers[0][0])
        sentence = f"Wait until a {kind.lower()} is final, at most `wait_s` seconds, and return it. Look at `final`."
        return (
            f"    async def wait(self, {self._ids[0]}: int, *, wait_s: float = WAIT_S) -> results.{kind}:\n"
            f"{docstring(sentence, indent=' ' * 8)}"
            f"        call = {self._call()}\n"
            f"        look = partial(self._caller.answer, results.{kind}, call{self._known(kind)})\n"
            f"        return await until_final(look, wait_s=wait_s)\n"
        )

    def _text(self, opening: str, returned: str, *code: str) -> str:
        by_place = [f"{argument}: int" for argument in self._ids]
        by_name: list[str] = []
        for name, schema in self._fields.items() if not self._takes_changes else ():
            is_by_place = name in self._required | _BY_PLACE and not {name, f"{self._name}.{name}"} & _BY_NAME
            (by_place if is_by_place else by_name).append(self._parameter(name, schema, name in self._required))
        by_name += [self._parameter(name, self._query[name]["schema"], False) for name in self._filters()]
        by_name += ["idempotency_key: str | None = None"] * self._has_key
        by_name += ["wait_s: float = WAIT_S"] * (self._name in _WITH_OUTCOME)
        by_name += ["page_size: int = 100"] * ("limit" in self._query)
        given = ["self", *by_place, *(["*", *by_name] if by_name else [])]
        if self._takes_changes:
            body = self._operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            given.append(f"**changes: Unpack[results.{class_of(body)}]")
        lines = "".join(f"        {line}\n" for line in code)
        return f"    {opening}({', '.join(given)}) -> {returned}:\n{self._about()}{lines}"

    def _filters(self) -> list[str]:
        return [name for name in self._query if name not in ("limit", "cursor")]

    def _parameter(self, name: str, schema: Schema, is_required: bool) -> str:
        if kind := _TYPES.get(f"{self._name}.{name}", _TYPES.get(name)):
            return f"{name}: {kind}"
        kind = annotation(schema, sent=True).removesuffix(" | None")
        said = re.search(r"Default: `(.*?)`", schema.get("description", ""))
        if said and not is_required:
            default = json.loads(said[1])
            return f"{name}: {kind} = {tuple(default) if isinstance(default, list) else default!r}"
        return f"{name}: {kind}" if is_required else f"{name}: {kind} | None = None"

    def _body(self) -> str:
        if self._takes_changes:
            return "changes"
        arrays = {name for name, schema in self._fields.items() if "Sequence" in annotation(schema, sent=True)}
        given = (f'{name}=listed("{name}", {name})' if name in arrays else f"{name}={name}" for name in self._fields)
        return f"{'send_body' if 'items' in self._fields else 'body'}({', '.join(given)})"

    def _call(self) -> str:
        given = [f'method="{self._verb}"', f"path={self._where}"] + [f"body={self._body()}"] * bool(self._fields)
        key = "idempotency_key" if self._name in _NEEDS_NO_KEY else "key_of(idempotency_key)"
        given += [f"key={key}"] * self._has_key
        return f"Call({', '.join([*given, *['repeatable=False'] * (self._name in _NOT_TWICE)])})"

    def _known(self, kind: str) -> str:
        """Return the field of the answer that must be the id in the path, if it is about the same noun."""
        if not self._ids or not kind.lower().endswith(self._ids[0].removesuffix("_id")):
            return ""
        name = self._ids[0] if self._ids[0] in named(self._answers[0][0])["properties"] else "id"
        return f', {{"{name}": {self._ids[0]}}}'

    def _about(self) -> str:
        summary = self._operation["summary"].removesuffix(", page by page")
        if self._verb == "GET":
            summary = f"{'Yield' if self._is_list else 'Return'} {summary[0].lower()}{summary[1:]}"
        note = {**_MAY_BE_GONE, **_STAYS}.get(self._name, "")
        first, *rest = self._operation["description"].split("\n\n")
        scope = rest[-1] if "platform_key" in str(self._operation.get("security")) and rest else ""
        text = prose(f"{first} {scope} {note}")
        arguments, refusals = dict(self._arguments()), dict(self._refusals())
        return docstring(f"{summary}.", text, indent=" " * 8, Args=arguments, Raises=refusals)

    def _arguments(self) -> Iterator[tuple[str, str]]:
        for name, schema in {**self._fields, **{name: self._query[name] for name in self._filters()}}.items():
            about = re.sub(r" Default: `.*?`\.", "", prose(schema["description"]))
            if known := schema.get("schema", schema).get("enum"):
                about += f" Known: {', '.join(f'`{word}`' for word in known)}."
            if self._name in _STAYS:
                about = re.sub(r"[;,] None: \w+", "", about)
            of_field = _ARGUMENTS.get(f"{self._name}.{name}", _ARGUMENTS.get(name, about))
            yield name, of_field if name in self._fields else about
        for name in ["idempotency_key"] * self._has_key + ["wait_s"] * (self._name in _WITH_OUTCOME):
            yield name, _ARGUMENTS.get(f"{self._name}.{name}", _ARGUMENTS[name])

    def _refusals(self) -> Iterator[tuple[str, str]]:
        for status, answer in self._operation["responses"].items():
            name = answer.get("$ref", "").rpartition("/")[2]
            if status in _REFUSED and name not in ("", *_ALWAYS) and (status, self._name) != ("404", "deleteWebhook"):
                yield f"{_REFUSED[status]} ({status})", prose(named(answer["$ref"])["description"])
        if self._name in _NOT_TWICE:
            yield "NoAnswer", "It is unknown whether it was done, and it is not done again: look before you call again."
        if self._name in _WITH_OUTCOME:
            yield "NoAnswer", "It is unknown whether it was accepted. Make the same call again with `NoAnswer.key`."
            yield "NotAccepted", "A `NoAnswer`, and it was surely not accepted."


def _argument(nouns: str, part: str) -> str:
    """Return the argument for an id in a path, such as `batch_id` for `batches/{id}`."""
    noun = re.sub(r"(?<=ch)es$|s$", "", nouns.rpartition("/")[2])
    return f"{noun}_id" if part == "{id}" else part.strip("{}")
