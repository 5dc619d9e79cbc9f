from __future__ import annotations

import pytest

from labmates.errors import UsageError
from labmates.util.loopback import address_of, open_socket


def listen(port: int | None, *, host: str = "127.0.0.1", usual: int = 8642) -> object:
    return open_socket(host, port, what="viewer", usual=usual)


@pytest.mark.parametrize("host", ["0.0.0.0", "example.org", "192.168.1.7", ""])
def test_no_other_machine_can_be_let_in(host: str) -> None:
    with pytest.raises(UsageError, match="the viewer listens on this machine alone"):
        listen(0, host=host)


def test_a_port_that_is_taken_is_told_and_the_usual_one_is_stepped_over() -> None:
    with open_socket("127.0.0.1", 0, what="viewer", usual=8642) as first:
        port = first.getsockname()[1]
        assert address_of(first) == f"http://127.0.0.1:{port}"
        with pytest.raises(
            UsageError, match=f"can't listen on 127.0.0.1:{port}: Address already in use; give another --port"
        ):
            listen(port)
        with open_socket("127.0.0.1", None, what="viewer", usual=port) as second:
            assert second.getsockname()[1] not in (0, port)
