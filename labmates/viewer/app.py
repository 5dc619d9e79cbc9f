"""The viewer's web application: routes, request handlers, and error pages.

It writes only scores by hand and the index of full-text search. Unrecorded data of a running run (replies in
progress and questions to people) come from the run itself (`labmates.workflows.people.live`), which also receives the
answers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from importlib.resources import files
from typing import Any, Final, Literal
from urllib.parse import parse_qs, quote

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from labmates.errors import LabmatesError, UsageError, unknown_name
from labmates.pages.links import Links
from labmates.pages.rendering import explain, plain, render
from labmates.records.database import StoreError
from labmates.records.listing import Chosen, facets, run_page
from labmates.records.reading import RunReader
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.studies.runs import so_far
from labmates.viewer.files import AbsentError, figure, file_of
from labmates.viewer.pages.analyses import MOST_AT_ONCE, Computed, analyses_page, analysis_figure
from labmates.viewer.pages.compare import MOST_COLUMNS, compare_page
from labmates.viewer.pages.judging import judging_page, take_scores
from labmates.viewer.pages.run import event_page, overview, person_page, story, story_since
from labmates.viewer.pages.runs import runs_page, studies_page, study_news
from labmates.viewer.pages.search import Indexer, search_page
from labmates.viewer.pages.transcript import transcript
from labmates.viewer.security import Gate, hosts_of
from labmates.workflows.people.live import ask_run, follow_run, waiting_runs
from labmates.workflows.protocol.glossary import glossary

_log = logging.getLogger(__name__)

ASSETS: Final = {
    "viewer.css": "text/css; charset=utf-8",
    "viewer.js": "text/javascript; charset=utf-8",
    "theme.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The viewer's static files, with their types."""
MOST_NUMBER: Final = 2**31 - 2
"""Maximum number of an event or a body, with room for a successor."""
LONGEST_FORM: Final = 1 << 16
"""Maximum bytes of a form."""
_PATIENCE_SECONDS: Final = 1.0
"""Time for a run to give the state of its budget."""
_LINKS = Links()


def make_app(store: Store, *, token: str, port: int, once: str = "") -> ASGIApp:
    """The application behind its gate, at a loopback address with this port; see `Gate` for the tokens."""
    return Gate(_Viewer(store).application(), token, hosts_of(port), once=once)


def asset(name: str) -> bytes:
    """Content of a static file of the viewer."""
    return files("labmates.viewer").joinpath("static", name).read_bytes()


class _Viewer:
    """Request handlers (those that read the store block; Starlette runs them in threads)."""

    def __init__(self, store: Store) -> None:
        explain(glossary)
        self._store = store
        self._computed = Computed()
        self._form_token = secrets.token_urlsafe(32)
        self._indexer = Indexer(store)

    def application(self) -> Starlette:
        """The application without its gate."""
        pages: dict[str, Callable[[Request], Response | Awaitable[Response]]] = {
            "/": self._runs,
            "/studies": self._studies,
            "/studies/live": self._study_live,
            "/analyses": self._analyses,
            "/search": self._search,
            "/analyses/figure": self._analysis_figure,
            "/compare": self._compare,
            "/runs/{run}/story": partial(self._page_of_run, story),
            "/runs/{run}/transcript": partial(self._page_of_run, transcript),
            "/runs/{run}/events/{event:int}": self._event,
            "/runs/{run}/figures/{body:int}.png": self._figure,
            "/runs/{run}/files/{event:int}/{place:int}": self._file,
            "/runs/{run}": self._run,
            "/runs/{run}/live": self._live,
            "/runs/{run}/replies": self._replies,
            "/live": self._number_of_runs,
            "/static/{name}": _asset,
        }
        return Starlette(
            routes=[
                *(Route(path, page, methods=["GET"]) for path, page in pages.items()),
                Route("/runs/{run}/approval", partial(self._person, "approval"), methods=["GET", "POST"]),
                Route("/runs/{run}/turn", partial(self._person, "turn"), methods=["GET", "POST"]),
                Route("/judging", self._judging, methods=["GET"]),
                Route("/judging", self._scored, methods=["POST"]),
            ],
            exception_handlers={
                UsageError: lambda _, error: _error(400, "That can't be shown", error),
                StoreError: lambda _, error: _error(503, "The store can't be read", error),
                AbsentError: lambda _, error: _error(404, f"There is no such {error.what}", error),
                403: lambda *_: _error(
                    403, "This form is from an earlier session of the viewer", "Reload its page and send it again."
                ),
                HTTPException: lambda *_: _error(
                    404, "There is no such page", "The viewer has no page at this address."
                ),
                Exception: self._broken,
            },
        )

    def _reader(self, request: Request) -> RunReader:
        return self._open(request.path_params["run"])

    def _open(self, run_id: str) -> RunReader:
        reader = self._read(run_id)
        reader.run = so_far(self._store, reader.run)
        return reader

    def _read(self, run_id: str) -> RunReader:
        try:
            return RunReader(self._store, self._store.run(run_id))
        except UsageError as error:
            raise AbsentError("run", str(error)) from error

    async def _runs(self, request: Request) -> Response:
        waiting = await waiting_runs(_PATIENCE_SECONDS)
        return HTMLResponse(await run_in_threadpool(self._runs_page, request.query_params, waiting))

    def _runs_page(self, query: QueryParams, waiting: Collection[str]) -> Markup:
        left = self._indexer.catch_up() if query.get("search") else 0
        return runs_page(self._store, query, _LINKS, unindexed=left, waiting=waiting)

    def _search(self, request: Request) -> Response:
        status, page = search_page(self._store, self._indexer, request.query_params, _LINKS)
        return HTMLResponse(page, status)

    def _studies(self, request: Request) -> Response:
        return HTMLResponse(studies_page(self._store, _LINKS))

    def _analyses(self, request: Request) -> Response:
        study, number = self._study(request)
        query = request.query_params
        runs = list(self._store.runs(study=study)) if len(query) > 1 or number <= MOST_AT_ONCE else None
        name = query.get("analysis", "")
        return HTMLResponse(analyses_page(self._store, study, runs, _LINKS, name, self._computed, query))

    def _study(self, request: Request) -> tuple[str, int]:
        """The name of a study, and the number of its runs."""
        study = request.query_params.get("study", "")
        if study not in (known := facets(self._store).studies):
            raise unknown_name("study", study[:100], known)
        return study, sum(known[study].values())

    def _analysis_figure(self, request: Request) -> Response:
        runs = list(self._store.runs(study=self._study(request)[0]))
        return _saved(*analysis_figure(self._store, runs, request.query_params, self._computed))

    def _number_of_runs(self, request: Request) -> Response:
        """The news for the page of a store without runs."""
        return JSONResponse({"last": facets(self._store).total, "more": False, "ended": False})

    def _study_live(self, request: Request) -> Response:
        news = study_news(study_counts(self._store, request.query_params.get("study", "")))
        return JSONResponse({"last": news["stamp"], "more": False, "ended": not news["is_live"]})

    async def _run(self, request: Request) -> Response:
        reader = await run_in_threadpool(self._reader, request)
        page = partial(overview, budget=await _budget(reader.run))
        return HTMLResponse(await run_in_threadpool(page, reader, _LINKS))

    def _page_of_run(self, page: Callable[[RunReader, QueryParams, Links], Markup], request: Request) -> Response:
        return HTMLResponse(page(self._reader(request), request.query_params, _LINKS))

    def _event(self, request: Request) -> Response:
        return HTMLResponse(event_page(self._reader(request), _number(request, "event"), _LINKS))

    def _compare(self, request: Request) -> Response:
        query = request.query_params
        named = [query.get("a", ""), query.get("b", ""), *query.getlist("run")]
        marked = [name.strip() for name in named if name.strip()]
        if len(marked) > MOST_COLUMNS:
            raise UsageError(f"{MOST_COLUMNS} runs can be compared at once; {len(marked)} were marked")
        if len(marked) < 2:
            first = marked[0] if marked else ""
            kind = self._open(first).run.kind if first else ""
            recent = run_page(self._store, Chosen(kind=kind))
            return HTMLResponse(render("compare.html", links=_LINKS, columns=[], one=first, recent=recent))
        return HTMLResponse(compare_page(list(map(self._open, marked)), _LINKS))

    async def _live(self, request: Request) -> Response:
        reader = await run_in_threadpool(self._read, request.path_params["run"])
        news = await run_in_threadpool(self._news, request, reader)
        held = {name: dollars for name, dollars in (await _budget(reader.run)).items() if name == "held"}
        return JSONResponse({**news, **held})

    def _news(self, request: Request, reader: RunReader) -> dict[str, Any]:
        after = request.query_params.get("after", "-1").removeprefix("-1") or "-1"
        if after != "-1" and not (after.isdecimal() and len(after) < 12):
            raise UsageError(f"'{after[:40]}' is not an event number")
        html, last = Markup(""), reader.last
        if request.query_params.get("mode") == "append":
            html, last = story_since(reader, int(after), _LINKS)
        more = last < reader.last
        return {"html": html, "last": last, "more": more, "ended": reader.run.status != "running"}

    async def _replies(self, request: Request) -> Response:
        """Stream the replies in progress and the waiting question as server-sent events."""
        reader = await run_in_threadpool(self._reader, request)
        return StreamingResponse(_events(reader.run.id), media_type="text/event-stream")

    async def _person(self, page: Literal["approval", "turn"], request: Request) -> Response:
        """The page with what waits for a person; the form of an answer is passed on to its run."""
        reader = await run_in_threadpool(self._reader, request)
        run_id, agent = reader.run.id, request.query_params.get("agent", "")
        note, form = "", dict[str, str]()
        if request.method == "POST":
            form = await self._checked_form(request)
            fields = {name.removeprefix("field:"): value for name, value in form.items() if name.startswith("field:")}
            answer = await ask_run(run_id, {**form, "do": "reply", "fields": fields})
            note = "The run no longer executes on this machine." if answer is None else answer["fault"]
            if not note:
                after = _LINKS.run(run_id) if page == "approval" else _LINKS.of_run(run_id, page, agent=agent)
                return RedirectResponse(after, 303)
        told = await ask_run(run_id, {"do": "turn" if page == "turn" else "question", "agent": agent}) or {}
        told |= {"agent": agent, "given": form, "note": note, "form_token": self._form_token}
        html = await run_in_threadpool(partial(person_page, reader, _LINKS, page, **told))
        return HTMLResponse(html, 409 if note else 200)

    def _judging(self, request: Request) -> Response:
        study, _ = self._study(request)
        judge = request.query_params.get("judge", "")
        return HTMLResponse(judging_page(self._store, study, judge, _LINKS, form_token=self._form_token))

    async def _scored(self, request: Request) -> Response:
        """Store the scores of a person, and show the next report."""
        form = await self._checked_form(request)
        study, judge = form.get("study", ""), form.get("judge", "")
        try:
            await run_in_threadpool(self._write, lambda store: take_scores(store, form))
        except UsageError as error:
            page = partial(judging_page, form_token=self._form_token, note=str(error))
            return HTMLResponse(await run_in_threadpool(page, self._store, study, judge, _LINKS), 400)
        return RedirectResponse(_LINKS.page("judging", study=study, judge=judge), 303)

    def _write(self, work: Callable[[Store], None]) -> None:
        """Run a write on a separate connection: the viewer's store may be read-only."""
        with Store(self._store.url, must_exist=True) as store:
            if store.is_read_only:
                raise UsageError(f"the store {store.shown_url} can't be written")
            work(store)

    async def _checked_form(self, request: Request) -> dict[str, str]:
        form = await _form(request)
        if not secrets.compare_digest(form.get("form_token", "").encode(), self._form_token.encode()):
            raise HTTPException(403)
        return form

    def _figure(self, request: Request) -> Response:
        return Response(figure(self._reader(request), _number(request, "body")), media_type="image/png")

    def _file(self, request: Request) -> Response:
        file = file_of(self._reader(request), _number(request, "event"), _number(request, "place"))
        return _saved(file.name, file.content, file.media)

    def _broken(self, request: Request, error: Exception) -> Response:
        if isinstance(error, LabmatesError):
            return _error(500, "That can't be shown", error)
        _log.error("%s failed", request.url.path, exc_info=error)
        return _error(500, "This page failed", "The log of labmates view has the reason.")


def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        raise HTTPException(404)
    return Response(asset(name), headers={"content-type": ASSETS[name]})


async def _events(run_id: str) -> AsyncIterator[str]:
    """Yield the server-sent events of a run; empty unless it executes on this machine."""
    yield "retry: 5000\n\n"
    async for message in follow_run(run_id, {"do": "follow"}):
        if "text" in message:
            message["text"] = plain(message["text"])
        yield f"data: {json.dumps(message)}\n\n"


async def _budget(run: RunRecord) -> Mapping[str, Any]:
    """The state of a running run's budget; empty if it is unknown, or the run does not answer."""
    if run.status != "running":
        return {}
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await ask_run(run.id, {"do": "budget"}) or {}
    return {}


async def _form(request: Request) -> dict[str, str]:
    """The fields of a submitted form. Raises `UsageError` if it is too long, or has too many fields."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_FORM:
            raise UsageError(f"the form has more than {LONGEST_FORM:,} bytes; give a shorter text")
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=100, keep_blank_values=True)
    except ValueError as error:
        raise UsageError(f"the form can't be read: {error}") from None
    return {name: values[-1] for name, values in fields.items()}


def _saved(name: str, content: bytes, media: str = "application/octet-stream") -> Response:
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
    return Response(content, media_type=media, headers=headers)


def _number(request: Request, name: str) -> int:
    """A number from an address; numbers too large for a database give 404."""
    number: int = request.path_params[name]
    if number > MOST_NUMBER:
        raise HTTPException(404)
    return number


def _error(status: int, title: str, message: object) -> Response:
    return HTMLResponse(render("error.html", title=title, message=str(message), links=_LINKS), status)
