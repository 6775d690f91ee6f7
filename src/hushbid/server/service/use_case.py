"""A use case is a function registered on the service, with its route. It receives a transaction and the request.

A function that reads takes a connection, one that changes something takes a transaction; what takes several of them, or
computes for seconds in between, takes the `ServiceContext`. `hushbid.server.service.registry` lists the functions under
names, as `Read`, `Change`, `Steps` and their kin, with the `Route` of those that are reached over HTTP. Callers of
``service.draft(who, settings)`` pass what the function takes after its first argument. So no signature is written
twice, and mypy knows them all. The names in a route's path are the use case's first arguments after the caller, the
fields of its body and its query are arguments by name. The HTTP interface, its description, the table of roles and the
calls of `hushbid.client` are made from it.

A change may be requested under an ``Idempotency-Key``: ``service.draft.once(key, who, settings)``. The answer is stored
by the operation that carries the request out, in the same transaction. So there is no moment at which one is durable
without the other: a client that lost its answer, also because the server was killed, asks again under the same key and
gets the first answer, or the request is carried out now. What was refused is not stored. Answers may hold links, so
they are sealed with a key made from the idempotency key itself, of which the database holds only a hash.
"""

import hashlib
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, overload

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Connection

from hushbid.errors import Conflict, HushbidError, InputError
from hushbid.server.installation import Installation
from hushbid.server.model.views import JobView
from hushbid.server.service.forecast import Effort
from hushbid.server.service.writer import Writer
from hushbid.server.store import jobs
from hushbid.server.store.database import Clock, Transaction

Role = Literal["anybody", "staff", "analyst", "link", "secret"]
"""Who may ask: everybody; analysts and auditors; analysts; a participant with an unused link, or with a secret."""


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

    body: type[Any] | None = None
    """What a request holds: an argument of that very class, or a `hushbid.server.service.bodies.Form` of arguments. It
    may be left out if it needs nothing."""

    query: tuple[str, ...] = ()
    """Arguments that stand in the address behind a question mark."""

    status: int = 200
    """Of an answer."""

    answers: Any = None
    """What an answer holds, if not what the use case returns. A form with one field wraps that."""

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


Asks = TypeVar("Asks")
"""What a use case is on a running server: something that can be called."""

Operation = Callable[[Transaction], T]


class Write(Protocol):
    """Runs an operation under a name and returns when it is durable."""

    def __call__(self, name: str, operation: Operation[T]) -> T: ...


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


class HasContext(Protocol):
    """Whatever use cases can be asked of."""

    @property
    def context(self) -> ServiceContext:
        """What they work with."""


class Serves(HasContext, Protocol):
    """A running server: it also takes submissions, and works in the background."""

    @property
    def writer(self) -> Writer:
        """Takes what many send at once."""

    def start(self, job: JobView) -> None:
        """Begin to work in the background."""


Server = TypeVar("Server", bound=HasContext)


class UseCase(ABC, Generic[Server, Asks]):
    """A name on a class: on a running server what can be called, on the class itself what is registered."""

    def __init__(self, function: Callable[..., Any], route: Route | None) -> None:
        self.function = function
        """What does it."""

        self.route = route
        """How it is reached over HTTP; None if it is not."""

        self.__doc__ = function.__doc__

    @property
    def takes_key(self) -> bool:
        """Return whether a request for it may carry an idempotency key: PUT states what is to be so, and needs none."""
        route = self.route
        once = route is not None and route.method in ("POST", "DELETE") and not route.repeatable
        return once and isinstance(self, (Change, Background))

    @overload
    def __get__(self, server: None, owner: type) -> Self: ...

    @overload
    def __get__(self, server: Server, owner: type) -> Asks: ...

    def __get__(self, server: Server | None, owner: type) -> Self | Asks:
        return self if server is None else self.of(server)

    @abstractmethod
    def of(self, server: Server) -> Asks:
        """What is called on that server."""


class Read(UseCase[HasContext, Callable[P, T]], Generic[P, T]):
    """A use case that reads, in one consistent state."""

    def __init__(self, function: Callable[Concatenate[Connection, P], T], route: Route | None = None) -> None:
        super().__init__(function, route)
        self._function = function

    def of(self, server: HasContext) -> Callable[P, T]:
        """The function, called with a connection."""

        def read(*args: P.args, **kwargs: P.kwargs) -> T:
            with server.context.read() as connection:
                return self._function(connection, *args, **kwargs)

        return read


class Steps(UseCase[HasContext, Callable[P, T]], Generic[P, T]):
    """A use case that takes several steps."""

    def __init__(self, function: Callable[Concatenate[ServiceContext, P], T], route: Route | None = None) -> None:
        super().__init__(function, route)
        self._function = function

    def of(self, server: HasContext) -> Callable[P, T]:
        """The function, called with the context."""

        def take(*args: P.args, **kwargs: P.kwargs) -> T:
            return self._function(server.context, *args, **kwargs)

        return take


@dataclass(frozen=True, slots=True)
class Asked(Generic[P, T]):
    """A change that can be asked for."""

    name: str
    """By which crash tests know it."""

    prepare: Callable[P, Operation[T]]
    """Does what comes before the transaction, and returns what is done in it."""

    context: ServiceContext
    then: Callable[[T], object] | None = None
    """What follows once it is durable."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        result = self.context.write(self.name, self.prepare(*args, **kwargs))
        if self.then is not None:
            self.then(result)
        return result

    def once(self, key: IdempotencyKey, *args: P.args, **kwargs: P.kwargs) -> tuple[bytes, bool]:
        """Make the change unless it was made before under this key; return the answer, and whether it was.

        The change and the answer become durable together, so a request is carried out once even if the server is
        killed in the middle of it.
        """
        before = self._answered(key)
        if before is not None:
            return before, True
        try:
            result, answer = self.context.write(self.name, key.around(self.prepare(*args, **kwargs)))
        except AlreadyDone as done:
            return done.answer, True
        except HushbidError:  # perhaps because the same request has just been carried out
            before = self._answered(key)
            if before is None:
                raise
            return before, True
        if self.then is not None:
            self.then(result)
        return answer, False

    def _answered(self, key: IdempotencyKey) -> bytes | None:
        with self.context.read() as connection:
            return key.answer(connection)


class Change(UseCase[HasContext, Asked[P, T]], Generic[P, T]):
    """A use case that changes something, in one transaction, under a name by which crash tests know it."""

    def __init__(
        self, name: str, function: Callable[Concatenate[Transaction, P], T], route: Route | None = None
    ) -> None:
        super().__init__(function, route)
        self._name = name
        self._function = function

    def of(self, server: HasContext) -> Asked[P, T]:
        """The change, which prepares nothing."""
        return Asked(self._name, self._operation, server.context)

    def _operation(self, *args: P.args, **kwargs: P.kwargs) -> Operation[T]:
        return lambda tx: self._function(tx, *args, **kwargs)


class Background(UseCase[Serves, Asked[P, JobView]], Generic[P]):
    """A change that begins work in the background."""

    def __init__(
        self, name: str, function: Callable[Concatenate[Transaction, P], JobView], route: Route | None = None
    ) -> None:
        super().__init__(function, route)
        self._change = Change(name, function)

    def of(self, server: Serves) -> Asked[P, JobView]:
        """The change, after which the work begins."""
        return replace(self._change.of(server), then=server.start)


@dataclass(frozen=True, slots=True)
class Submitted(Generic[P, T]):
    """What many participants send at once."""

    name: str
    function: Callable[Concatenate[Transaction, str, P], T]
    writer: Writer
    holds_secret: bool

    def __call__(self, token: str, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.soon(token, *args, **kwargs).result()

    def soon(self, token: str, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Without waiting: the future's result is there once the change is durable."""
        return self.writer.submit(
            self.name,
            lambda tx: self.function(tx, token, *args, **kwargs),
            checks_first=True,
            secret=token if self.holds_secret else None,
        )


class Submission(UseCase[Serves, Submitted[P, T]], Generic[P, T]):
    """A change that checks everything before it writes, so that many share one transaction without savepoints.

    Its first argument is a participant's secret, by which the people of a whole group are read at once, or a link.
    """

    def __init__(
        self, name: str, function: Callable[Concatenate[Transaction, str, P], T], route: Route | None = None
    ) -> None:
        super().__init__(function, route)
        self._name = name
        self._function = function
        self._holds_secret = route is None or route.by == "secret"

    def of(self, server: Serves) -> Submitted[P, T]:
        """What is submitted to the writer."""
        return Submitted(self._name, self._function, server.writer, self._holds_secret)
