"""The table of requests is the server's."""

from tools.client_calls import TABLE, table


def test_the_clients_requests_are_those_of_the_servers_registry() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(), "run python -m tools.client_calls"
