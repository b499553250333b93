"""Finding and fetching a release's source archive through a package index's simple API (PEP 503 and PEP 691)."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import ssl
from dataclasses import dataclass
from email.message import Message
from html.parser import HTMLParser
from typing import Any
from urllib.error import URLError
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from packaging.utils import InvalidSdistFilename, parse_sdist_filename
from packaging.version import Version

from dsmigrate.derivation.errors import DerivationError

PROJECT = "deepspeed"
ACCEPTED = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
SCHEMES = ("https", "http", "file")
LARGEST = 200 * 1024 * 1024
SECONDS = 60


class UnreachableError(DerivationError):
    """The index does not answer."""


@dataclass(frozen=True)
class Link:
    """A file that the index lists: its name, its address without fragment, and its sha256 if one is given."""

    name: str
    url: str
    sha256: str | None


def fetch_sdist(version: str, index_url: str) -> bytes:
    """Return the source archive of a release, verified against the hash of its link.

    Raises UnreachableError when the index does not answer, DerivationError when it lists no source archive of the
    release, gives no sha256 for it, or the archive differs from it.
    """
    page = f"{index_url.rstrip('/')}/{PROJECT}/"
    content, kind, answered = _get(page)
    link = sdist(parse(content.decode("utf-8", "replace"), kind, answered), version)
    if link is None:
        raise DerivationError(f"DeepSpeed {version}: the index lists no source archive of this release")
    if link.sha256 is None:
        raise DerivationError(f"DeepSpeed {version}: the index gives no sha256 for {link.name}")
    data, _, _ = _get(with_credentials(link.url, index_url))
    found = hashlib.sha256(data).hexdigest()
    if found != link.sha256:
        raise DerivationError(f"DeepSpeed {version}: {link.name} has sha256 {found}, the index says {link.sha256}")
    return data


def sdist(links: list[Link], version: str) -> Link | None:
    """Return the link of the source archive of a release, or None."""
    for link in links:
        try:
            project, found = parse_sdist_filename(link.name)
        except InvalidSdistFilename:
            continue
        if project == PROJECT and found == Version(version) and link.name.endswith(".tar.gz"):
            return link
    return None


def parse(text: str, kind: str, base: str) -> list[Link]:
    """Return the files of a project page; ``kind`` is the content type of the answer, ``base`` its address."""
    if "json" in kind:
        try:
            return _from_json(json.loads(text), base)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DerivationError(f"the index's JSON cannot be read: {error}") from error
    page = _Page(base)
    page.feed(text)
    return page.links


def _from_json(page: dict[str, Any], base: str) -> list[Link]:
    return [
        Link(file["filename"], urljoin(base, urldefrag(file["url"]).url), file.get("hashes", {}).get("sha256"))
        for file in page["files"]
    ]


class _Page(HTMLParser):
    """Collects the links of an HTML page."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.links: list[Link] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        address = values.get("href")
        if address is None:
            return
        if tag == "base":
            self.base = urljoin(self.base, address)
        elif tag == "a":
            url, fragment = urldefrag(urljoin(self.base, address))
            name = unquote(urlsplit(url).path.rpartition("/")[2])
            sha256 = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else None
            self.links.append(Link(name, url, sha256))


def with_credentials(url: str, index_url: str) -> str:
    """Return ``url`` with the user and password of the index when it lies on the same host and has none."""
    wanted, given = urlsplit(index_url), urlsplit(url)
    if "@" in wanted.netloc and given.hostname == wanted.hostname and "@" not in given.netloc:
        return urlunsplit(given._replace(netloc=wanted.netloc))
    return url


def _get(url: str) -> tuple[bytes, str, str]:
    """Return body, content type and final address; user and password in ``url`` are sent, never shown."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise DerivationError(f"an index address starts with {' or '.join(SCHEMES)}, not {parts.scheme or 'nothing'}")
    plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    request = Request(plain, headers={"Accept": ACCEPTED, "User-Agent": "dsmigrate"})  # noqa: S310 - checked above
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        request.add_header("Authorization", f"Basic {base64.b64encode(pair).decode('ascii')}")
    try:
        with urlopen(request, timeout=SECONDS, context=_context(parts.scheme)) as answer:  # noqa: S310
            body: bytes = answer.read(LARGEST + 1)
            headers: Message = answer.headers
            address: str = answer.url
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise UnreachableError(
            f"the package index cannot be reached ({reason}); choose another one with --index-url"
        ) from None
    if len(body) > LARGEST:
        raise DerivationError(f"the answer of the package index is larger than {LARGEST // 2**20} MiB")
    return body, headers.get_content_type(), address


def _context(scheme: str) -> ssl.SSLContext | None:
    """Return the certificates that pip is told to trust, or None for the default."""
    bundle = os.environ.get("PIP_CERT")
    return ssl.create_default_context(cafile=bundle) if scheme == "https" and bundle else None
