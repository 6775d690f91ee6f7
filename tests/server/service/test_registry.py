"""The registry of use cases: what a route promises is what its use case takes."""

import inspect
from typing import Any

import pytest

from hushbid.errors import NotAllowed
from hushbid.server.model.views import Principal
from hushbid.server.service.bodies import Form
from hushbid.server.service.registry import UseCases, reached
from hushbid.server.service.use_case import UseCase
from tests.extent import each


@each("name", reached())
def test_path_query_and_body_of_a_route_are_arguments_of_its_use_case(name: str) -> None:
    use_case, route = reached()[name]
    _, *parameters = inspect.signature(use_case.function).parameters.values()
    if parameters[0].name in ("who", "secret", "link"):
        parameters.pop(0)
    in_path = [one.name.removesuffix("_id") for one in parameters[: len(route.names)]]
    assert in_path == list(route.names)
    given = {*route.query, *(() if use_case.body is None else body_arguments(use_case.body, use_case.function))}
    others = parameters[len(route.names) :]
    assert given <= {one.name for one in others}
    assert {one.name for one in others if one.default is one.empty} <= given


def body_arguments(body: type[Any], function: Any) -> set[str]:
    if not issubclass(body, Form):
        return {name for name, hint in inspect.get_annotations(function).items() if hint is body}
    return set(body.model_construct(**dict.fromkeys(body.model_fields)).arguments())


def test_addresses_are_unique_and_described() -> None:
    addresses = [route.address for _, route in reached().values()]
    assert len(set(addresses)) == len(addresses) > 35
    assert all(use_case.function.__doc__ for use_case, _ in reached().values())


def test_changes_by_post_and_delete_take_a_key_but_for_those_that_may_be_repeated() -> None:
    changes = {
        name: use_case
        for name, (use_case, route) in reached().items()
        if use_case.kind in ("change", "job") and route.method in ("POST", "DELETE")
    }
    assert {name for name, use_case in changes.items() if not use_case.takes_key} == {"remove_payout", "leave"}
    assert not any(use_case.takes_key for name, (use_case, _) in reached().items() if name not in changes)


def test_every_use_case_of_staff_says_who_may_ask_and_refuses_others() -> None:
    of_staff = {name: one for name, one in vars(UseCases).items() if isinstance(one, UseCase) and one.takes_staff}
    assert len(of_staff) > 30
    for name, one in of_staff.items():
        auditor = Principal(role="auditor", id="u1", name="otto")
        participant = Principal(role="participant", id="p1", name="")
        for who in (participant, *([auditor] if one.by == "analyst" else [])):
            with pytest.raises(NotAllowed):
                one(None, who)
        assert one.by in ("analyst", "staff"), name
