from __future__ import annotations

import json
import lzma
import random
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from labmates._version import __version__
from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.bodies import Bodies
from labmates.records.events import ErrorEvent, MessageEvent
from labmates.records.run import Usage
from labmates.records.store import Store
from labmates.sandboxes.choose import choose_backend
from labmates.workflows.protocol.experiment import EXPERIMENTS
from labmates_doors.bundles import container
from labmates_doors.bundles.checking import RESTS, Checked, checking
from labmates_doors.bundles.container import MANIFEST, MEMBERS, RUNS, TABLES, encode, opened, pack, sha256, write_lines
from labmates_doors.bundles.making import make_bundle
from tests.doors.forging import flipped, forged, rests, seal
from tests.support.command_line import Labmates
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.recorded import a_record

GAME = {
    "name": "sharing",
    "kind": "game",
    "description": "<script>alert(1)</script>",
    "models": ["scripted:random", "scripted:fair-share"],
    "fixed": {"game": "public-goods", "group_size": 3, "rounds": 2},
}
FLIPS, FORGERIES = 200, 12


def made(labmates: Labmates, study: dict[str, Any], *options: str, **environment: str) -> Path:
    """Run a study and write its bundle."""
    name, file = study["name"], labmates.folder / f"{study['name']}.yaml"
    file.write_text(json.dumps(study))
    run = labmates("study", "run", str(file), *options, **environment)
    assert run.code == 0, run.err
    done = labmates("bundle", name, "-o", f"{name}.zip", *options, **environment)
    assert done.code == 0, done.err
    return labmates.folder / f"{name}.zip"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of a study of a game by two baselines."""
    return made(Labmates(tmp_path_factory.mktemp("bundle")), GAME)


async def check(path: Path, **options: Any) -> Checked:
    async with checking(path, **options) as checked:
        return checked


def rewritten(bundle: Path, target: Path, change: Callable[[Any, Any, list[Any]], None]) -> Path:
    """Write a bundle with changed manifest, tables or lines, and new digests of its members."""
    with opened(bundle) as found:
        manifest, tables = json.loads(json.dumps(found.manifest)), found.tables
        lines = [json.loads(line) for line in found.lines()]
    change(manifest, tables, lines)
    folder = target.parent / "members"
    folder.mkdir()
    write_lines(folder / RUNS, map(encode, lines))
    (folder / TABLES).write_text(encode(tables))
    manifest["files"] = {name: sha256(folder / name) for name in (TABLES, RUNS)}
    (folder / MANIFEST).write_text(encode(manifest, readable=True))
    pack(folder, target)
    return target


def test_anybody_checks_a_bundle_and_browses_its_runs(bundle: Path, labmates: Labmates) -> None:
    done = labmates("bundle", "verify", str(bundle), "--save", "theirs.db")
    assert done.code == 0, done.out
    assert "2 of 2 runs replayed" in done.out
    assert all(text in done.out for text in RESTS)
    digest = done.out.split()[-1]
    assert labmates("bundle", "verify", str(bundle), "--digest", digest).code == 0
    other = labmates("bundle", "verify", str(bundle), "--digest", "0" * 64)
    assert (other.code, "not the published one" in other.out) == (1, True)
    [told] = labmates("bundle", "verify", str(bundle), "--json").records
    assert (told["code"], told["digest"], told["replayed"], told["faults"]) == (0, digest, 2, [])
    assert told["events"] > 20
    assert len(labmates("runs", "--store", "theirs.db", "--json").records) == 2


def test_a_bundle_says_what_its_runs_were_made_with(bundle: Path) -> None:
    with opened(bundle) as found:
        holds, environment = found.manifest["holds"], found.manifest["environment"]
        lines = [json.loads(line) for line in found.lines()]
    assert holds["prices"] == {model: [[500_000, 3_000_000]] for model in sorted(GAME["models"])}
    assert holds["made"]["game"] == [lines[0]["run"]["made"]["game"]]
    assert {"python", "numpy"} <= environment["libraries"].keys()
    prompts = [body["text"] for body in lines[0]["bodies"] if '"system"' in body["text"]]
    assert prompts


async def test_every_flipped_byte_is_refused(bundle: Path, tmp_path: Path) -> None:
    draw = random.Random(1)
    for _ in range(FLIPS):
        edit = flipped(bundle, tmp_path / "edited.zip", draw)
        assert (await check(tmp_path / "edited.zip", first_only=True)).faults, edit


@pytest.mark.parametrize("seed", range(FORGERIES))
async def test_an_edit_with_all_digests_anew_is_refused_or_rests_on_the_published_digest(
    bundle: Path, tmp_path: Path, seed: int
) -> None:
    edit = forged(bundle, tmp_path / "edited.zip", random.Random(seed))
    checked = await check(tmp_path / "edited.zip", first_only=True)
    assert checked.faults or rests(edit, checked), edit
    with opened(bundle) as honest:
        published = honest.digest
    assert (await check(tmp_path / "edited.zip", first_only=True, published=published)).faults


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda m, t, r: t[0]["rows"][0].update(models="<b>best</b>"), "'<b>best</b>', and 'scripted:"),
        (lambda m, t, r: t.pop(0), "it lacks the table"),
        (lambda m, t, r: t.append(t[0]), "one of its tables is repeated"),
        (lambda m, t, r: t[0]["rows"].append({"x": [1]}), "its tables: "),
        (lambda m, t, r: m["holds"].update(runs=3), "misstates what it holds: runs"),
        (lambda m, t, r: m.update(study={**m["study"], "name": "other"}), "run 1 is not of the study"),
        (lambda m, t, r: m.pop("environment"), "its manifest: environment"),
        (lambda m, t, r: r.append(r[0]), "one of its runs is repeated"),
        (lambda m, t, r: r[0]["run"].update(seed=10**30), "one of its runs is repeated, or beyond"),
        (lambda m, t, r: r[0]["run"].update(seed="1"), "run 1: seed: expected a whole number"),
        (lambda m, t, r: r[0]["run"].update(extra=1), "other columns than a run of this version: extra"),
        (lambda m, t, r: r[0]["bodies"][0].update(media="json", text="{"), "its text or file 1 is malformed"),
        (lambda m, t, r: r[0]["bodies"][0].update(media="png", text="%"), "its text or file 1 is malformed"),
        (lambda m, t, r: r[0]["run"]["condition"].update(rounds=10**9), "differ from its digest"),
        (lambda m, t, r: r[0]["events"].pop(3), "are not those that its hash chain covers"),
    ],
)
async def test_what_a_bundle_holds_is_held_to_its_form_and_digests(
    bundle: Path, tmp_path: Path, change: Callable[[Any, Any, list[Any]], None], fault: str
) -> None:
    checked = await check(rewritten(bundle, tmp_path / "edited.zip", change))
    assert any(fault in text for text in checked.faults), checked.faults


async def test_a_condition_that_lacks_a_default_is_refused(bundle: Path, tmp_path: Path) -> None:
    def shortened(manifest: Any, _: Any, lines: list[Any]) -> None:
        assert lines[0]["run"]["condition"].pop("temperature") is None
        seal(manifest, lines)

    checked = await check(rewritten(bundle, tmp_path / "edited.zip", shortened))
    assert "its condition is not as labmates writes it" in checked.faults[-1], checked


def archive(target: Path, members: dict[str, bytes], *, deflated: bool = False, link: str = "") -> Path:
    """Write a zip archive of any members."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED) as file:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = file.compression
            if name == link:
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            file.writestr(info, content)
    return target


@pytest.mark.parametrize(
    ("members", "options", "fault"),
    [
        ({}, {}, "it holds 0 members"),
        ({**dict.fromkeys(MEMBERS, b""), "../../etc/x": b""}, {}, "it holds '../../etc/x'"),
        ({"/etc/passwd": b""}, {}, "it holds '/etc/passwd'"),
        (dict.fromkeys(MEMBERS, bytes(10**6)), {"deflated": True}, "manifest.json is compressed"),
        (dict.fromkeys(MEMBERS, b""), {"link": MANIFEST}, "other settings than labmates'"),
    ],
)
async def test_archives_that_are_no_bundles_are_refused(
    tmp_path: Path, members: dict[str, bytes], options: dict[str, Any], fault: str
) -> None:
    checked = await check(archive(tmp_path / "x.zip", members, **options))
    [text] = checked.faults
    assert fault in text


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", b"PK\x05\x06" + bytes(18)])
async def test_files_that_are_no_archives_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    assert len((await check(tmp_path / "x.zip")).faults) == 1


@pytest.mark.parametrize(
    ("manifest", "fault"),
    [
        ("{}", "does not name the digests"),
        ('{"a": 1, "a": 2}', "not in the form of JSON"),
        ('{"a": NaN}', "NaN is not a number"),
        ('{"a": 1e999}', "not JSON as labmates writes it"),
        ("[" * 100_000, "not JSON as labmates writes it"),
        ("1" * 10_000, "not JSON as labmates writes it"),
        ("\N{SNOWMAN}", "not ASCII"),
    ],
)
async def test_manifests_of_hostile_json_are_refused(bundle: Path, tmp_path: Path, manifest: str, fault: str) -> None:
    with zipfile.ZipFile(bundle) as file:
        file.extractall(tmp_path)
    (tmp_path / MANIFEST).write_text(manifest)
    pack(tmp_path, tmp_path / "x.zip")
    [text] = (await check(tmp_path / "x.zip")).faults
    assert fault in text
    assert len(text) < 300


async def test_runs_that_unpack_without_end_are_refused(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "MOST_TEXT", 2**20)
    with zipfile.ZipFile(bundle) as file:
        file.extractall(tmp_path)
    (tmp_path / RUNS).write_bytes(lzma.compress(bytes(2**26)))
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    manifest["files"][RUNS] = sha256(tmp_path / RUNS)
    (tmp_path / MANIFEST).write_text(encode(manifest, readable=True))
    pack(tmp_path, tmp_path / "x.zip")
    [text] = (await check(tmp_path / "x.zip")).faults
    assert "holds more than 1 MB a run" in text


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


@pytest.mark.parametrize("metric", [10**300, 10**900])
@pytest.mark.parametrize("depth", [100, 300, 800])
async def test_huge_numbers_and_deep_values_with_right_digests_are_refused(
    bundle: Path, tmp_path: Path, metric: int, depth: int
) -> None:
    def huge(manifest: Any, tables: Any, lines: list[Any]) -> None:
        lines[0]["run"]["metrics"]["payoff"] = metric
        next(event for event in lines[0]["events"] if event["type"] == "decision")["data"]["decision"] = nested(depth)
        seal(manifest, lines)

    assert (await check(rewritten(bundle, tmp_path / "x.zip", huge), first_only=True)).faults


def test_a_study_that_no_check_could_read_is_not_written(
    store: Store, entered: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "MOST_TEXT", 1_000)
    entered(text="x" * 2_000)
    with pytest.raises(UsageError, match="the study is too large for a bundle"):
        make_bundle(store.url, "made-up", tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


async def test_another_version_is_said_and_what_its_code_may_explain_is_no_fault(bundle: Path, tmp_path: Path) -> None:
    def other_code(manifest: Any, tables: Any, _: Any) -> None:
        manifest["code"] = dict.fromkeys(manifest["code"], "00000000")
        tables[0]["rows"][0]["models"] = "better"

    checked = await check(rewritten(bundle, tmp_path / "code.zip", other_code))
    assert checked.faults == []
    assert "the code here is another" in checked.unchecked[0]
    (tmp_path / "store").mkdir()
    older = rewritten(bundle, tmp_path / "store" / "x.zip", lambda m, t, r: m.update(store="0001"))
    checked = await check(older)
    assert (checked.faults, checked.digest) == ([], sha256(tmp_path / "store" / "members" / MANIFEST))
    assert "only its bytes were checked" in checked.unchecked[0]
    assert f"check it with labmates {__version__}" in checked.unchecked[0]


@pytest.fixture
def entered(store: Store) -> Callable[..., str]:
    """A function that enters a run into the study "made-up", as nobody executed it."""

    def enter(**changes: Any) -> str:
        bodies = Bodies()
        if condition := changes.get("condition"):
            valid = EXPERIMENTS.get("science").condition.model_validate(condition)
            changes |= {"key": valid.key, "models": valid.models()}
        text = bodies.keep(changes.pop("text", "hello"))
        events = [MessageEvent(step="1", team="a", agent="b", to="c", text=text), *changes.pop("events", [])]
        run = a_record(usage=Usage(), study="made-up", **changes)
        store.create(run, events=events, bodies=bodies.take_new())
        return run.id

    spec = {"name": "made-up", "kind": "science", "seed": 7}
    with store.engine.begin() as connection:
        connection.execute(sa.insert(schema.studies).values(name="made-up", spec=spec, cap=None, created=1.0))
    return enter


async def test_code_of_an_organisation_as_a_graph_never_runs(
    store: Store, entered: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef work(lab): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    organisation = {"name": "theirs", "graph": "evil:work", "seats": ["one"]}
    entered(condition={"task": "anomaly", "model": "scripted:hasty", "organisation": organisation})
    make_bundle(store.url, "made-up", tmp_path / "x.zip")
    checked = await check(tmp_path / "x.zip")
    assert "its organisation is code of its maker's, which a check never runs" in checked.unchecked[-1]
    assert not (tmp_path / "ran").exists()


async def test_a_baseline_that_a_bundle_names_is_no_reason_to_run_code_without_isolation(
    store: Store, entered: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def chosen(name: str, *, trusted_code: bool) -> Any:
        asked.append((name, trusted_code))
        return choose_backend(name, trusted_code=trusted_code)

    entered(settings={"sandbox": "unsafe-local"}, condition={"task": "anomaly", "model": "scripted:hasty"})
    make_bundle(store.url, "made-up", tmp_path / "x.zip")
    for place in ("labmates_doors.bundles.checking", "labmates.studies.session"):
        monkeypatch.setattr(f"{place}.choose_backend", chosen)
    monkeypatch.setenv("DOCKER_HOST", "unix:///no/engine")
    await check(tmp_path / "x.zip")
    assert asked == [("auto", False)] * 2
    monkeypatch.setattr("labmates.sandboxes.bubblewrap.bubblewrap_works", lambda: "it is not installed")
    checked = await check(tmp_path / "x.zip")
    assert "agents' code needs a sandbox" in checked.unchecked[-1]


def test_a_text_with_a_secret_of_the_environment_is_not_published(
    store: Store, entered: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_API_KEY", "correct horse battery")
    run = entered(text="I found correct horse battery in a file")
    with pytest.raises(UsageError, match=f"run {run} holds the value of LAB_API_KEY"):
        make_bundle(store.url, "made-up", tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


def test_the_key_of_a_models_file_is_in_no_byte_of_a_bundle(labmates: Labmates) -> None:
    key = "sk-very-secret-0123456789"
    with OpenAIServer(Answer(text='{"group": 1, "global": 1}')) as server:
        entry = {"provider": "openai", "model": "m", "base_url": server.base_url, "api_key_env": "LAB_KEY"}
        (labmates.folder / "models.yaml").write_text(json.dumps({"mine": entry}))
        fixed = {"game": "public-goods", "group_size": 2, "rounds": 1}
        path = made(labmates, {"name": "keyed", "kind": "game", "models": ["mine"], "fixed": fixed}, LAB_KEY=key)
        assert any(key in str(request.headers) for request in server.requests)
    with opened(path) as found:
        texts = [path.read_bytes().decode("latin-1"), encode(dict(found.manifest)), *found.lines()]
    assert not any(key in text for text in texts)
    assert labmates("bundle", "verify", str(path)).code == 0


async def test_runs_that_failed_or_wait_are_in_a_bundle_and_not_replayed(
    store: Store, entered: Callable[..., str], tmp_path: Path
) -> None:
    entered(status="failed", error="no", events=[ErrorEvent(text="no")], key="k1")
    entered(status="running", key="k2")
    make_bundle(store.url, "made-up", tmp_path / "x.zip")
    checked = await check(tmp_path / "x.zip")
    assert (checked.faults, checked.unchecked, checked.runs) == ([], [], 2)
    assert sorted(checked.notes) == ["1 failed runs are not replayed", "1 interrupted runs are not replayed"]


async def test_a_condition_with_another_model_than_its_run_is_refused(bundle: Path, tmp_path: Path) -> None:
    def renamed(manifest: Any, tables: Any, lines: list[Any]) -> None:
        lines[0]["run"]["condition"]["model"] = "absent:random"
        seal(manifest, lines)

    checked = await check(rewritten(bundle, tmp_path / "x.zip", renamed))
    assert any("its models are not those of its condition" in fault for fault in checked.faults), checked.faults


async def test_runs_of_an_experiment_that_is_not_installed_can_not_be_checked(bundle: Path, tmp_path: Path) -> None:
    def elsewhere(manifest: Any, tables: Any, lines: list[Any]) -> None:
        for line in lines:
            line["run"]["kind"] = "theirs"
        seal(manifest, lines)

    def declared(manifest: Any, tables: Any, lines: list[Any]) -> None:
        manifest["study"]["spec"]["kind"] = "theirs"
        elsewhere(manifest, tables, lines)

    (tmp_path / "first").mkdir()
    checked = await check(rewritten(bundle, tmp_path / "first" / "x.zip", elsewhere))
    assert any("its kind is not that of the study" in fault for fault in checked.faults), checked.faults
    checked = await check(rewritten(bundle, tmp_path / "x.zip", declared))
    assert checked.faults == []
    assert "unknown kind 'theirs'" in checked.unchecked[0]
    assert "no experiment 'theirs' is installed here" in checked.unchecked[1]


@pytest.mark.slow("packages/labmates-doors/tests/doors/test_bundles.py")
def test_runs_of_each_store_and_later_verdicts_are_verified(store_url: str, labmates: Labmates) -> None:
    fixed = {"task": "anomaly", "difficulty": "easy", "organisation": "solo"}
    study = {"name": "lab", "kind": "science", "models": ["scripted:silent"], "fixed": fixed}
    path = made(labmates, study, "--store", store_url)
    judged = labmates("judge", "--study", "lab", "--judge", "scripted:referee", "--store", store_url)
    assert judged.code == 0, judged.err
    again = labmates("bundle", "lab", "-o", "judged.zip", "--store", store_url)
    assert again.code == 0, again.err
    for file in (path, labmates.folder / "judged.zip"):
        checked = labmates("bundle", "verify", str(file))
        assert checked.code == 0, checked.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing", "-o", "x.zip"), "unknown study 'nothing'"),
        (("sharing", "-o", "sharing.zip"), "'sharing.zip' exists; give a new file"),
        (("sharing", "-o", "/dev/null/x.zip"), "can't write the bundle '/dev/null/x.zip'"),
        (("sharing",), "Missing option"),
        (("verify", "nothing.zip"), "can't read the bundle 'nothing.zip'"),
        (("verify", "sharing.zip", "--sandbox", "unsafe-local"), "'unsafe-local' is not one of"),
    ],
)
def test_wrong_options_are_told(bundle: Path, arguments: tuple[str, ...], message: str) -> None:
    done = Labmates(bundle.parent)("bundle", *arguments)
    assert done.code == 2
    assert message in done.err.replace("\n", " ")
