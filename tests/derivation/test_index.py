from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from dsmigrate.derivation.errors import DerivationError
from dsmigrate.derivation.index import Link, UnreachableError, fetch_sdist, parse, sdist, with_credentials

DATA = b"an archive"
SHA = hashlib.sha256(DATA).hexdigest()
NAME = "deepspeed-0.19.8.tar.gz"
JSON = "application/vnd.pypi.simple.v1+json"
Answer = tuple[str, bytes]
Serve = Callable[[dict[str, Answer]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve answers by path on this machine; the requests are kept in ``serve.seen``."""
    servers: list[ThreadingHTTPServer] = []

    def start(answers: dict[str, Answer]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kind, body = answers.get(self.path, ("", b""))
                wanted = answers.get("authorization")
                refused = wanted is not None and self.headers.get("Authorization") != wanted[0]
                self.send_response(401 if refused else 200 if kind else 404)
                self.send_header("Content-Type", kind or "text/plain")
                self.end_headers()
                self.wfile.write(b"" if refused else body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/simple"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def page(sha256: str = SHA, name: str = NAME) -> Answer:
    file = {"filename": name, "url": f"../../files/{name}", "hashes": {"sha256": sha256} if sha256 else {}}
    return JSON, json.dumps({"meta": {"api-version": "1.1"}, "name": "deepspeed", "files": [file]}).encode()


def test_an_archive_is_fetched_through_a_json_page(serve: Serve) -> None:
    index = serve({"/simple/deepspeed/": page(), f"/files/{NAME}": ("application/gzip", DATA)})
    assert fetch_sdist("0.19.8", index) == DATA


def test_an_archive_is_fetched_through_an_html_page(serve: Serve) -> None:
    text = f'<!DOCTYPE html><a href="/files/{NAME}#sha256={SHA}">{NAME}</a>'
    index = serve({"/simple/deepspeed/": ("text/html", text.encode()), f"/files/{NAME}": ("application/gzip", DATA)})
    assert fetch_sdist("0.19.8", f"{index}/") == DATA


def test_html_links_are_resolved_against_the_page_or_its_base() -> None:
    text = f'<a href="{NAME}#sha256=1">x</a><base href="https://files.example/"><a href="p/b%2Bc.whl">y</a><a>no</a>'
    assert parse(text, "text/html", "https://index.example/simple/deepspeed/") == [
        Link(NAME, f"https://index.example/simple/deepspeed/{NAME}", "1"),
        Link("b+c.whl", "https://files.example/p/b%2Bc.whl", None),
    ]


def test_only_the_source_archive_of_the_very_release_is_taken() -> None:
    names = ["deepspeed-0.19.8-py3-none-any.whl", "deepspeed-0.19.8.zip", "deepspeed-0.19.tar.gz", "junk.txt",
             "deepspeed-mii-0.19.8.tar.gz", "deepspeed-0.19.8.tar.gz"]  # fmt: skip
    found = sdist([Link(name, name, None) for name in names], "0.19.8")
    assert found is not None
    assert found.name == NAME
    assert sdist([Link(name, name, None) for name in names[:-1]], "0.19.8") is None


def test_a_page_without_the_release_is_an_error(serve: Serve) -> None:
    index = serve({"/simple/deepspeed/": page(name="deepspeed-0.19.7.tar.gz")})
    with pytest.raises(DerivationError, match=r"0\.19\.8: the index lists no source archive"):
        fetch_sdist("0.19.8", index)


def test_an_archive_that_differs_from_its_hash_is_refused(serve: Serve) -> None:
    index = serve({"/simple/deepspeed/": page(), f"/files/{NAME}": ("application/gzip", b"another")})
    with pytest.raises(DerivationError, match=f"the index says {SHA}"):
        fetch_sdist("0.19.8", index)


def test_an_archive_without_a_hash_is_refused(serve: Serve) -> None:
    index = serve({"/simple/deepspeed/": page(sha256="")})
    with pytest.raises(DerivationError, match=f"gives no sha256 for {NAME}"):
        fetch_sdist("0.19.8", index)


def test_json_of_another_shape_is_an_error() -> None:
    with pytest.raises(DerivationError, match="JSON cannot be read"):
        parse('{"files": [{"name": "x"}]}', JSON, "https://index.example/")


def test_user_and_password_of_the_index_are_sent_and_not_shown(serve: Serve) -> None:
    answers = {"/simple/deepspeed/": page(), f"/files/{NAME}": ("application/gzip", DATA)}
    index = serve(answers | {"authorization": ("Basic bWU6czNjcmV0IQ==", b"")})
    assert fetch_sdist("0.19.8", index.replace("//", "//me:s3cret%21@")) == DATA
    with pytest.raises(UnreachableError) as caught:
        fetch_sdist("0.19.8", index.replace("//", "//me:wr0ng@"))
    assert "wr0ng" not in str(caught.value)


def test_credentials_stay_with_the_host_of_the_index() -> None:
    index = "https://me:secret@index.example/simple"
    assert with_credentials("https://index.example/f", index) == "https://me:secret@index.example/f"
    assert with_credentials("https://files.example/f", index) == "https://files.example/f"


def test_an_index_that_does_not_answer_is_told() -> None:
    with pytest.raises(UnreachableError, match=r"cannot be reached .* choose another one with --index-url"):
        fetch_sdist("0.19.8", "http://127.0.0.1:9/simple")


def test_an_address_of_another_scheme_is_refused() -> None:
    with pytest.raises(DerivationError, match="starts with https or http or file, not ftp"):
        fetch_sdist("0.19.8", "ftp://index.example/simple")
