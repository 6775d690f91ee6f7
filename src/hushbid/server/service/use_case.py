"""A use case is a function registered on the service, with its route. It receives a transaction and the request.

A function that reads takes a connection, one that changes something takes a transaction; what takes several of them, or
computes for seconds in between, takes the `ServiceContext`. `hushbid.server.service.registry` lists the functions under
names; the decorators `reads`, `changes`, `steps`, `begins` and `submits` say what each is, with the `Route` of those
that are reached over HTTP. Callers of ``service.draft(who, settings)`` pass what the function takes after its first
argument. So no signature is written twice, and mypy knows them all. The names in a route's path are the use case's
first arguments after the caller, and the arguments that are described (``Annotated``) are the fields of a request's
body. The HTTP interface, its description, the table of roles and the calls of `hushbid.client` are made from it.

A change may be requested under an ``Idempotency-Key``: ``service.draft.once(key, who, settings)``. The answer is stored
by the operation that carries the request out, in the same transaction. So there is no moment at which one is durable
without the other: a client that lost its answer, also because the server was killed, asks again under the same key and
gets the first answer, or the request is carried out now. What was refused is not stored. Answers may hold links, so
they are sealed with a key made from the idempotency key itself, of which the database holds only a hash.
"""

import hashlib
import inspect
import re
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, cast, overload

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Connection

from hushbid.errors import Conflict, HushbidError, InputError
from hushbid.server.installation import Installation
from hushbid.server.model import rules
from hushbid.server.model.access import Role
from hushbid.server.model.views import JobView, Principal
from hushbid.server.service.bodies import Form, body_of
from hushbid.server.store import jobs
from hushbid.server.store.database import Clock, Transaction


@dataclass(frozen=True, slots=True)
class Route:
    """An address of the HTTP interface."""

    address: str
    """A method and a path below the interface's prefix: ``POST /campaigns/{campaign}/copy``."""

    summary: str
    """A title for the interface's description, whose text is the use case's docstring."""

    _: KW_ONLY
    by: Role
    """Who may ask."""

    body: type[Form] | None = None
    """What a request holds, where that is not a form of the use case's described arguments."""

    query: tuple[str, ...] = ()
    """Arguments that stand in the address behind a question mark."""

    status: int = 200
    """Of an answer."""

    answers: Any = None
    """What an answer holds, if not what the use case returns."""

    wraps: str = ""
    """The one field of an answer that holds what the use case returns; empty if that is the answer."""

    computes: bool = False
    """Whether it computes for seconds, so that it waits for its turn."""

    repeatable: bool = False
    """Whether a change needs no key, because making it again changes nothing."""

    @property
    def method(self) -> str:
        """Return the method."""
        return self.address.partition(" ")[0]

    @property
    def path(self) -> str:
        """Return the path."""
        return self.address.partition(" ")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names in the path, in order."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))


P = ParamSpec("P")
T = TypeVar("T")
SHORTEST_KEY, LONGEST_KEY, KEY_LETTERS = 16, 200, r"^[!-~]+$"
_VERY_FEW, _PATIENCE = 5, 4.0
_NONCE_BYTES = 12


def is_key(text: str) -> bool:
    """Whether a text may be a key: long enough that nobody guesses it, printable ASCII without spaces."""
    return SHORTEST_KEY <= len(text) <= LONGEST_KEY and re.fullmatch(KEY_LETTERS, text) is not None


class AlreadyDone(Exception):
    """The request was carried out before, and got this answer."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("The request was carried out before.")
        self.answer = answer


@dataclass(frozen=True, repr=False)
class IdempotencyKey:
    """A request's key, under which a use case is carried out once: ``service.draft.once(key, who, settings)``."""

    who: str
    """Whose key it is: two callers may use the same one."""

    key: str
    asked: bytes
    """What is asked for; another request under the same key is refused."""

    encode: Callable[[Any], bytes]
    """Makes the answer from what the use case returns."""

    def __post_init__(self) -> None:
        if not is_key(self.key):
            raise InputError(
                f"Idempotency-Key must have {SHORTEST_KEY} to {LONGEST_KEY} printable ASCII characters, no spaces.",
                field="Idempotency-Key",
            )

    def answer(self, connection: Connection) -> bytes | None:
        """Return the answer that the request got before, if it was carried out."""
        found = jobs.remembered(connection, self._place)
        if found is None:
            return None
        request, sealed = found
        if request != self._digest:
            raise Conflict("This Idempotency-Key was used for another request.")
        return self._cipher().decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)

    def around(self, operation: Callable[[Transaction], T]) -> Callable[[Transaction], tuple[T, bytes]]:
        """Return the operation that carries the request out, unless that was done before, and stores the answer."""

        def carried_out(tx: Transaction) -> tuple[T, bytes]:
            before = self.answer(tx.connection)
            if before is not None:
                raise AlreadyDone(before)
            result = operation(tx)
            answer = self.encode(result)
            nonce = secrets.token_bytes(_NONCE_BYTES)
            sealed = nonce + self._cipher().encrypt(nonce, answer, None)  # answers hold links
            jobs.remember(tx.connection, self._place, request=self._digest, answer=sealed, at=tx.at)
            return result, answer

        return carried_out

    @property
    def _place(self) -> str:
        return hashlib.sha256(f"hushbid request\n{self.who}\n{self.key}".encode()).hexdigest()

    @property
    def _digest(self) -> str:
        return hashlib.sha256(self.asked).hexdigest()

    def _cipher(self) -> AESGCM:
        return AESGCM(hashlib.sha256(f"hushbid answer\n{self.who}\n{self.key}".encode()).digest())


Operation = Callable[[Transaction], T]


class Write(Protocol):
    """Runs an operation under a name and returns when it is durable."""

    def __call__(self, name: str, operation: Operation[T]) -> T: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How many campaigns to simulate: as many as fit into some seconds, within limits."""

    least: int = 20
    most: int = 200
    seconds: float = 4.0

    def enough(self, done: int, end: float) -> int:
        """How many to simulate, so many being done: the most until the ``end``, the least after it, or very few where
        each takes so long that the least would take five times as long as was meant."""
        late = time.monotonic() - end
        if late < 0.0:
            return self.most
        return min(self.least, max(done, _VERY_FEW)) if late > _PATIENCE * self.seconds > 0.0 else self.least


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServiceContext:
    """What a use case works with that takes more than one transaction, in the background or not."""

    installation: Installation
    clock: Clock
    effort: Effort
    """How long to simulate campaigns, before one opens."""

    write: Write
    read: Callable[[], AbstractContextManager[Connection]]
    stopping: Callable[[], bool] = lambda: False
    """Whether the server is about to stop, so that what takes minutes is left to the next one."""


Kind = Literal["read", "steps", "change", "job", "submission"]
"""A use case reads, in one consistent state; or takes several steps; or changes something in one transaction; or begins
work in the background by such a change; or is a change that many people submit at once."""


class UseCase(Generic[P, T]):
    """A name on a class: on a running server what can be called, on the class itself what is registered."""

    def __init__(
        self, kind: Kind, function: Callable[..., T], route: Route | None, name: str = "", by: Role | None = None
    ) -> None:
        self.kind, self.function, self.route = kind, function, route
        self.name = name
        """By which crash tests know a change."""

        self.by = by if route is None else route.by
        """Who may ask; None where that is not an analyst or an auditor, or does not matter."""

        self.takes_staff = list(inspect.signature(function).parameters)[1:2] == ["who"]
        self.__doc__ = function.__doc__

    def __call__(self, given: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function with a connection, a transaction or a context, for somebody who may ask."""
        if self.takes_staff and self.by is not None:
            rules.require_role(cast("Principal", args[0]), self.by)
        return self.function(given, *args, **kwargs)

    @property
    def takes_key(self) -> bool:
        """Return whether a request for it may carry an idempotency key: PUT states what is to be so, and needs none."""
        once = self.route is not None and self.route.method in ("POST", "DELETE") and not self.route.repeatable
        return once and self.kind in ("change", "job")

    @cached_property
    def body(self) -> type[Any] | None:
        """Return what a request holds; None if nothing."""
        return None if self.route is None else self.route.body or body_of(self.function)

    @overload
    def __get__(self, server: None, owner: type) -> Self: ...

    @overload
    def __get__(self, server: object, owner: type) -> "Call[P, T]": ...

    def __get__(self, server: object, owner: type) -> "Self | Call[P, T]":
        return self if server is None else Call(self, server)


def reads(
    route: Route | None = None, *, by: Role | None = None
) -> Callable[[Callable[Concatenate[Connection, P], T]], UseCase[P, T]]:
    """Register what reads; ``by`` says who may ask where there is no route."""
    return lambda function: UseCase("read", function, route, by=by)


def steps(
    route: Route | None = None, *, by: Role | None = None
) -> Callable[[Callable[Concatenate[ServiceContext, P], T]], UseCase[P, T]]:
    """Register what takes several transactions, or computes."""
    return lambda function: UseCase("steps", function, route, by=by)


def changes(
    name: str, route: Route | None = None, *, by: Role | None = None
) -> Callable[[Callable[Concatenate[Transaction, P], T]], UseCase[P, T]]:
    """Register what changes something."""
    return lambda function: UseCase("change", function, route, name, by)


def begins(
    name: str, route: Route | None = None
) -> Callable[[Callable[Concatenate[Transaction, P], JobView]], UseCase[P, JobView]]:
    """Register what begins work in the background."""
    return lambda function: UseCase("job", function, route, name)


def submits(
    name: str, route: Route | None = None
) -> Callable[[Callable[Concatenate[Transaction, P], T]], UseCase[P, T]]:
    """Register a change that checks everything before it writes, so that many share a transaction without savepoints.

    Its first argument is a participant's secret, by which the people of a whole group are read at once, or a link.
    """
    return lambda function: UseCase("submission", function, route, name)


@dataclass(frozen=True, slots=True)
class Call(Generic[P, T]):
    """A use case on a running server."""

    use_case: UseCase[P, T]
    server: Any
    """Has a ``context``, and where use cases need them a ``writer`` and ``start`` for jobs."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        use_case, context = self.use_case, self.server.context
        if use_case.kind == "read":
            with context.read() as connection:
                return use_case(connection, *args, **kwargs)
        if use_case.kind == "steps":
            return use_case(context, *args, **kwargs)
        if use_case.kind == "submission":
            return self.soon(*args, **kwargs).result()
        result: T = context.write(use_case.name, lambda tx: use_case(tx, *args, **kwargs))
        return self._begun(result)

    def soon(self, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Submit without waiting: the future's result is there once the change is durable."""
        function, route = self.use_case.function, self.use_case.route
        by_link = route is not None and route.by == "link"
        future: Future[T] = self.server.writer.submit(
            self.use_case.name,
            lambda tx: function(tx, *args, **kwargs),
            checks_first=True,
            secret=None if by_link else args[0],
        )
        return future

    def once(self, key: IdempotencyKey, *args: P.args, **kwargs: P.kwargs) -> tuple[bytes, bool]:
        """Make the change unless it was made before under this key; return the answer, and whether it was.

        The change and the answer become durable together, so a request is carried out once even if the server is
        killed in the middle of it.
        """
        before = self._answered(key)
        if before is not None:
            return before, True
        operation = key.around(lambda tx: self.use_case(tx, *args, **kwargs))
        try:
            result, answer = self.server.context.write(self.use_case.name, operation)
        except AlreadyDone as done:
            return done.answer, True
        except HushbidError:  # perhaps because the same request has just been carried out
            before = self._answered(key)
            if before is None:
                raise
            return before, True
        self._begun(result)
        return answer, False

    def _answered(self, key: IdempotencyKey) -> bytes | None:
        with self.server.context.read() as connection:
            return key.answer(connection)

    def _begun(self, result: T) -> T:
        if self.use_case.kind == "job":
            self.server.start(result)
        return result
