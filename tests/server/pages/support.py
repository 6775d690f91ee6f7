"""A browser that notices everything, a visitor without one, and where pictures are kept."""

import html
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, BrowserContext, Page, Request

DESK, PHONE = {"width": 1180, "height": 900}, {"width": 360, "height": 780}
PICTURES = os.environ.get("HUSHBID_SCREENSHOTS")
"""The folder to keep pictures in; none are drawn without one."""
PAGE_HEADERS = {"Accept": "text/html,application/xhtml+xml", "Accept-Language": "en"}


@dataclass
class Watched:
    """A browser context, and everything it asked for or complained about."""

    url: str
    context: BrowserContext
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, address and body of each request, with all headers behind the body."""

    complaints: list[str] = field(default_factory=list)
    """What the console said: refused by the policy, failed to load, thrown by a script."""

    def page(self) -> Page:
        page = self.context.new_page()
        page.on("console", lambda said: self.hear(said.type, said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    def hear(self, kind: str, text: str) -> None:
        """Note what the console says, but not that a page came with the status of a refusal."""
        if kind == "error" and not text.startswith("Failed to load resource: the server responded with a status of 4"):
            self.complaints.append(text)

    def note(self, request: Request) -> None:
        headers = "\n".join(f"{name}: {value}" for name, value in request.headers.items())
        self.asked.append((request.method, request.url, f"{request.post_data or ''}\n{headers}"))

    def strangers(self) -> list[str]:
        """Addresses on any other host."""
        return [address for _, address, _ in self.asked if not address.startswith((self.url, "data:", "blob:"))]


@contextmanager
def watched(browser: Browser, url: str, **options: Any) -> Iterator[Watched]:
    """A browser that has never been here; complaints and requests to other hosts fail the test."""
    options = {"viewport": DESK, "locale": "en", "accept_downloads": True, **options}
    with browser.new_context(**options) as context:
        context.set_default_timeout(120_000)  # the machine may be busy; only what never happens takes so long
        found = Watched(url, context)
        context.on("request", found.note)
        yield found
        assert found.strangers() == []


def keep(page: Page, name: str, *, full: bool = True) -> None:
    """Keep a picture for people to look at, if they named a folder."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=full)


def too_wide(page: Page) -> int:
    """By how much a page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


class Visitor:
    """Somebody without a browser who fills in forms as they come, or as they should not."""

    def __init__(self, url: str, **headers: str) -> None:
        self.client = httpx.Client(base_url=url, headers={**PAGE_HEADERS, **headers}, timeout=300.0)

    def __enter__(self) -> "Visitor":
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def get(self, path: str) -> httpx.Response:
        return self.client.get(path)

    def csrf(self, path: str) -> str:
        """The token in the forms of a page."""
        return self.hidden(path)["csrf"]

    def hidden(self, path: str) -> dict[str, str]:
        """What a page's forms send by themselves: their token, and the name of a delivery."""
        found = dict(re.findall(r'name="(csrf|nonce)" value="([^"]+)"', self.get(path).text))
        if "csrf" not in found:  # where she stands has no form of its own
            found = dict(re.findall(r'name="(csrf)" value="([^"]+)"', self.get("/p/leave").text))
        assert "csrf" in found, path
        return found

    def fields(self, path: str) -> dict[str, str]:
        """Everything that a browser would send with the draft's form as it stands on a page."""
        page = _Fields()
        page.feed(self.client.get(path, follow_redirects=True).text)
        return page.found

    def draft(self, path: str) -> tuple[str, dict[str, str]]:
        """Where the draft's form on a page is sent, and what with."""
        found = re.search(r'<form id="draft"[^>]*action="([^"]+)"', self.client.get(path, follow_redirects=True).text)
        assert found is not None, path
        return found[1], self.fields(path)

    def send(self, path: str, page: str, **fields: Any) -> httpx.Response:
        """Fill in the form of a page."""
        return self.client.post(path, data={**self.hidden(page), **fields})

    def sent(self, path: str, page: str, **fields: Any) -> httpx.Response:
        """Fill in the form of a page, and look at the page that one is sent to."""
        answer = self.send(path, page, **fields)
        assert answer.status_code == 303, answer.text
        return self.client.get(answer.headers["location"], follow_redirects=True)

    def log_in(self, name: str, password: str) -> None:
        assert self.send("/login", "/login", name=name, password=password).status_code == 303

    def agree(self) -> httpx.Response:
        """Agree to what the first page says."""
        fields = dict(re.findall(r'name="(csrf|version|language)" value="([^"]+)"', self.get("/p").text))
        return self.client.post("/p/agree", data={**fields, "agreed": "yes"})

    def come_in(self, token: str) -> None:
        assert self.send("/p/enter", "/p/other", link=f"https://example.org/p#{token}").status_code == 303


class _Fields(HTMLParser):
    """The fields of the form with the id "draft"."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._inside, self._select, self._area = False, "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name, value = given.get("name") or "", given.get("value") or ""
        self._inside |= tag == "form" and given.get("id") == "draft"
        if not self._inside:
            return
        picked = given.get("type") not in ("radio", "checkbox") or "checked" in given
        if tag == "input" and name and picked and given.get("type") != "file":
            self.found[name] = value
        if tag == "select":
            self._select = name
        if tag == "option" and "selected" in given:
            self.found[self._select] = value
        if tag == "textarea":
            self._area, self.found[name] = name, ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area:
            self.found[self._area] = self.found[self._area].removeprefix("\n")
            self._area = ""
        if tag == "form":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._area:
            self.found[self._area] += data


def words(response: httpx.Response) -> str:
    """A page as text."""
    plain = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", response.text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", plain)).split())
