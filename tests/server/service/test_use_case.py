"""Use cases are functions with a name on the service."""

from hushbid.server.service import Service, drafts
from hushbid.server.service.use_case import UseCase


def test_on_the_class_a_use_case_is_itself_and_says_what_its_function_says() -> None:
    assert isinstance(Service.draft, UseCase)
    assert Service.draft.__doc__ == drafts.draft.__doc__
