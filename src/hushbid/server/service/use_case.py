"""A use case is a function registered on the service. It receives a transaction and the request.

A function that reads takes a connection, one that changes something takes a transaction; what takes several of them, or
computes for seconds in between, takes the `Desk`. `hushbid.server.service.registry` lists the functions under names, as
`Read`, `Change`, `Steps` and their kin, with the `Route` of those that are reached over HTTP. Callers of
``service.draft(who, settings)`` pass what the function takes after its first argument. So no signature is written
twice, and mypy knows them all.

A change may be asked for under a key (`hushbid.server.service.idempotency`): ``service.draft.once(key, who,
settings)``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from sqlalchemy import Connection

from hushbid.errors import HushbidError
from hushbid.server.domain.views import JobView
from hushbid.server.installation import Installation
from hushbid.server.service.forecast import Effort
from hushbid.server.service.idempotency import AlreadyDone, IdempotencyKey
from hushbid.server.service.route import Route
from hushbid.server.service.writer import Writer
from hushbid.server.store.database import Clock, Transaction

P = ParamSpec("P")
T = TypeVar("T")
Asks = TypeVar("Asks")
"""What a use case is on a running server: something that can be called."""

Operation = Callable[[Transaction], T]


class Write(Protocol):
    """Runs an operation under a name and returns when it is durable."""

    def __call__(self, name: str, operation: Operation[T]) -> T: ...


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Desk:
    """What a use case works with that takes more than one transaction, in the background or not."""

    installation: Installation
    clock: Clock
    effort: Effort
    """How long to simulate campaigns, before one opens."""

    write: Write
    read: Callable[[], AbstractContextManager[Connection]]
    stopping: Callable[[], bool] = lambda: False
    """Whether the server is about to stop, so that what takes minutes is left to the next one."""


class HasDesk(Protocol):
    """Whatever use cases can be asked of."""

    @property
    def desk(self) -> Desk:
        """What they work with."""


class Serves(HasDesk, Protocol):
    """A running server: it also takes submissions, and works in the background."""

    @property
    def writer(self) -> Writer:
        """Takes what many send at once."""

    def start(self, job: JobView) -> None:
        """Begin to work in the background."""


Server = TypeVar("Server", bound=HasDesk)


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


class Read(UseCase[HasDesk, Callable[P, T]], Generic[P, T]):
    """A use case that reads, in one consistent state."""

    def __init__(self, function: Callable[Concatenate[Connection, P], T], route: Route | None = None) -> None:
        super().__init__(function, route)
        self._function = function

    def of(self, server: HasDesk) -> Callable[P, T]:
        """The function, called with a connection."""

        def read(*args: P.args, **kwargs: P.kwargs) -> T:
            with server.desk.read() as connection:
                return self._function(connection, *args, **kwargs)

        return read


class Steps(UseCase[HasDesk, Callable[P, T]], Generic[P, T]):
    """A use case that takes several steps."""

    def __init__(self, function: Callable[Concatenate[Desk, P], T], route: Route | None = None) -> None:
        super().__init__(function, route)
        self._function = function

    def of(self, server: HasDesk) -> Callable[P, T]:
        """The function, called with the desk."""

        def take(*args: P.args, **kwargs: P.kwargs) -> T:
            return self._function(server.desk, *args, **kwargs)

        return take


@dataclass(frozen=True, slots=True)
class Asked(Generic[P, T]):
    """A change that can be asked for."""

    name: str
    """By which crash tests know it."""

    prepare: Callable[P, Operation[T]]
    """Does what comes before the transaction, and returns what is done in it."""

    desk: Desk
    then: Callable[[T], object] | None = None
    """What follows once it is durable."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        result = self.desk.write(self.name, self.prepare(*args, **kwargs))
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
            result, answer = self.desk.write(self.name, key.around(self.prepare(*args, **kwargs)))
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
        with self.desk.read() as connection:
            return key.answer(connection)


class Change(UseCase[HasDesk, Asked[P, T]], Generic[P, T]):
    """A use case that changes something, in one transaction, under a name by which crash tests know it."""

    def __init__(
        self, name: str, function: Callable[Concatenate[Transaction, P], T], route: Route | None = None
    ) -> None:
        super().__init__(function, route)
        self._name = name
        self._function = function

    def of(self, server: HasDesk) -> Asked[P, T]:
        """The change, which prepares nothing."""
        return Asked(self._name, self._operation, server.desk)

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
