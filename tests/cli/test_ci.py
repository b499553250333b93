from __future__ import annotations

import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.ci.comment import Api, CommentError, Posted
from dsmigrate.ci.event import EventError, read_event, revisions
from dsmigrate.cli.app import run
from dsmigrate.diff.formats.markdown import MARKER
from tests.cli.action import action
from tests.diff.repository import NOWHERE, Repository, environment

Captured = pytest.CaptureFixture[str]
STAGE_2 = '{\n  "train_batch_size": 8,\n  "zero_optimization": {\n    "stage": 2\n  }\n}\n'
STAGE_3 = STAGE_2.replace("2\n  }", "3\n  }")
BROKEN = STAGE_2.replace("2\n  }", "9\n  }")
ADDED = '{"zero_optimization": {"stage": 1}, "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 4}\n'
BOT = "github-actions[bot]"


@dataclass
class Github:
    """The comments of a pull request behind a server that answers like GitHub's REST interface."""

    comments: list[dict[str, Any]] = field(default_factory=list)
    reviewed: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    status: int = 200
    address: str = ""

    def answer(self, method: str, path: str, body: dict[str, Any]) -> object:
        self.asked.append((method, path.partition("?")[0]))
        if method == "GET":
            page = int(re.search(r"[?&]page=(\d+)", path)[1])  # type: ignore[index]
            held = self.reviewed if "/pulls/" in path else self.comments
            return held[(page - 1) * 100 : page * 100]
        if path.endswith("/reviews"):
            assert body["event"] == "COMMENT"
            self.reviewed += body["comments"]
            return body
        if method == "POST":
            self.comments.append({"id": len(self.comments) + 1, "user": {"login": BOT}, "body": body["body"]})
            return self.comments[-1]
        number = int(path.rpartition("/")[2])
        comment = next(one for one in self.comments if one["id"] == number)
        comment["body"] = body["body"]
        return comment


@pytest.fixture
def github() -> Iterator[Github]:
    state = Github()

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            state.tokens.add(self.headers["Authorization"])
            text = b"{}" if state.status != 200 else json.dumps(state.answer(self.command, self.path, body)).encode()
            self.send_response(state.status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = _answer  # noqa: N815 - the names that the base class asks for
        do_POST = _answer  # noqa: N815
        do_PATCH = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass
class Run:
    """A checked-out pull request, and what GitHub Actions sets around it."""

    repository: Repository
    base: str
    variables: dict[str, str]

    def event(self, head: str, *, fork: bool = False, base: str | None = None) -> None:
        text = (Path(__file__).parent / "events" / "pull_request.json").read_text(encoding="utf-8")
        text = text.replace("HEAD_SHA", head).replace("BASE_SHA", base or self.base)
        text = text.replace("HEAD_REPOSITORY", "someone/train" if fork else "octo/train")
        Path(self.variables["GITHUB_EVENT_PATH"]).write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        path = Path(self.variables[name])
        return path.read_text(encoding="utf-8") if path.exists() else ""


@pytest.fixture
def pull(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, github: Github) -> Run:
    repository = Repository.make(tmp_path / "work")
    base = repository.commit({"ds_config.json": STAGE_2, "package.json": '{"name": "x"}'})
    variables = {
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_REPOSITORY": "octo/train",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_API_URL": github.address,
        "GITHUB_WORKSPACE": str(repository.folder),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_TOKEN": "secret-token",
    }
    for name, value in (variables | NOWHERE).items():
        monkeypatch.setenv(name, value)
    return Run(repository, base, variables)


def test_a_pull_request_gets_annotations_a_summary_outputs_and_a_comment(
    pull: Run, github: Github, capsys: Captured
) -> None:
    head = pull.repository.commit({"ds_config.json": STAGE_3, "package.json": '{"name": "y"}', "new/zero1.json": ADDED})
    pull.event(head)
    assert run(["ci", "github", "--fail-on", "never"]) == 0
    out, err = capsys.readouterr()
    assert "file=ds_config.json,line=4,endLine=4," in out
    assert "::notice file=new/zero1.json::The config is added: ZeRO-1 · bf16" in out
    assert "package.json" not in out
    assert err == "comment on the pull request: created\n"
    summary = pull.read("GITHUB_STEP_SUMMARY")
    assert summary.startswith("## DeepSpeed configs\n\n- **`ds_config.json`**: ")
    assert f"([line 4](https://github.com/octo/train/blob/{head}/ds_config.json#L4))" in summary
    assert pull.read("GITHUB_OUTPUT").startswith("configs=2\nworst=")
    (comment,) = github.comments
    assert comment["body"] == f"{MARKER}\n{summary}"
    assert github.tokens == {"Bearer secret-token"}


def test_the_comment_is_updated_rather_than_repeated(pull: Run, github: Github, capsys: Captured) -> None:
    github.comments = [
        {"id": number + 1, "user": {"login": "octocat"}, "body": f"word {number}"} for number in range(150)
    ]
    pull.event(pull.repository.commit({"ds_config.json": STAGE_3}))
    assert run(["ci", "github", "--fail-on", "never"]) == 0
    first = github.comments[150]["body"]
    pull.event(pull.repository.commit({"ds_config.json": STAGE_3.replace("8", "16")}))
    assert run(["ci", "github", "--fail-on", "never"]) == 0
    assert len(github.comments) == 151
    assert github.comments[150]["body"] != first
    assert run(["ci", "github", "--fail-on", "never"]) == 0
    assert [method for method, _ in github.asked if method != "GET"] == ["POST", "PATCH"]
    assert capsys.readouterr().err.splitlines() == [
        "comment on the pull request: created",
        "comment on the pull request: updated",
        "comment on the pull request: left as it was",
    ]


def test_a_comment_that_is_no_longer_true_is_updated_and_none_is_made_for_nothing(
    pull: Run, github: Github, capsys: Captured
) -> None:
    pull.event(pull.repository.commit({"notes.txt": "1"}))
    assert run(["ci", "github", "--fail-on", "never"]) == 0
    assert github.comments == []
    assert capsys.readouterr().err == "comment on the pull request: not needed\n"
    pull.event(pull.repository.commit({"ds_config.json": STAGE_3}))
    assert run(["ci", "github", "--fail-on", "never"]) == 0
    pull.event(pull.repository.commit({"ds_config.json": STAGE_2}))
    assert run(["ci", "github", "--fail-on", "never"]) == 0
    (comment,) = github.comments
    assert comment["body"] == f"{MARKER}\n## DeepSpeed configs\n\nNo DeepSpeed config is changed.\n"


def test_somebody_elses_comment_with_our_first_line_is_not_touched(pull: Run, github: Github) -> None:
    github.comments = [{"id": 1, "user": {"login": "octocat"}, "body": f"{MARKER}\nmine"}]
    pull.event(pull.repository.commit({"ds_config.json": STAGE_3}))
    assert run(["ci", "github", "--fail-on", "never"]) == 0
    assert github.comments[0]["body"] == f"{MARKER}\nmine"
    assert len(github.comments) == 2


def test_a_pull_request_of_a_fork_gets_everything_but_the_comment(pull: Run, github: Github, capsys: Captured) -> None:
    pull.event(pull.repository.commit({"ds_config.json": STAGE_3}), fork=True)
    assert run(["ci", "github", "--fail-on", "never"]) == 0
    out, err = capsys.readouterr()
    assert "file=ds_config.json,line=4" in out
    assert "it comes from a fork, whose runs may only read" in err
    assert github.asked == []
    assert "`ds_config.json`" in pull.read("GITHUB_STEP_SUMMARY")


def test_a_token_that_may_not_write_fails_nothing(pull: Run, github: Github, capsys: Captured) -> None:
    github.status = 403
    pull.event(pull.repository.commit({"ds_config.json": STAGE_3}))
    assert run(["ci", "github", "--fail-on", "never"]) == 0
    said = capsys.readouterr().err
    assert "GitHub answers 403 to GET issues/7/comments; the job needs `permissions: pull-requests: write`" in said
    assert "secret-token" not in said


@pytest.mark.parametrize(("flags", "code"), [([], 1), (["--fail-on", "never"], 0)])
def test_what_breaks_fails_the_run_unless_told_otherwise(
    pull: Run, capsys: Captured, flags: list[str], code: int
) -> None:
    pull.event(pull.repository.commit({"ds_config.json": BROKEN}))
    assert run(["ci", "github", "--no-comment", *flags]) == code
    out = capsys.readouterr().out
    assert re.search(r"^::error file=ds_config.json,line=4,endLine=4,.*title=DF110", out, re.MULTILINE)
    assert "worst=breaking" in pull.read("GITHUB_OUTPUT")
    summary = pull.read("GITHUB_STEP_SUMMARY")
    code = re.search(r"This change makes the config invalid: .* \((DS\d+)\)", summary)
    assert code is not None
    assert out.count(code[1]) == summary.count(f"({code[1]})") == 1, "a finding is told once"


def test_what_was_wrong_before_fails_nothing(pull: Run, capsys: Captured) -> None:
    base = pull.repository.commit({"ds_config.json": BROKEN})
    head = pull.repository.commit({"ds_config.json": BROKEN.replace("8", "16")})
    pull.event(head, base=base)
    assert run(["ci", "github", "--no-comment"]) == 0
    assert "Neither config runs" in pull.read("GITHUB_STEP_SUMMARY")
    assert "::error" not in capsys.readouterr().out


def test_of_configs_with_the_same_change_it_is_told_once_with_a_link_to_each(pull: Run, github: Github) -> None:
    base = pull.repository.commit({"a/zero.json": STAGE_2, "b/zero3.json": "\n" + STAGE_2})
    head = pull.repository.commit({"a/zero.json": STAGE_3, "b/zero3.json": "\n" + STAGE_3})
    pull.event(head, base=base)
    assert run(["ci", "github", "--fail-on", "never"]) == 0
    body = github.comments[0]["body"]
    assert body.count("<details open><summary><code>a/zero.json</code>, <code>b/zero3.json</code>: ") == 1
    assert body.count("`zero_optimization.stage`: `2` → `3`") == 1, "the values stand under what names them first"
    at = f"https://github.com/octo/train/blob/{head}"
    assert f"([`zero.json` line 4]({at}/a/zero.json#L4), [`zero3.json` line 5]({at}/b/zero3.json#L5))" in body


def test_a_fix_of_changed_lines_is_suggested_once_and_one_of_other_lines_never(
    pull: Run, github: Github, capsys: Captured
) -> None:
    mistyped = STAGE_2.replace("{\n", '{\n  "gradient_cliping": 1.0,\n', 1)
    base = pull.repository.commit({"new_ds_config.json": mistyped})
    changed = mistyped.replace('"stage"', '"overlap_com": true,\n    "stage"')
    pull.event(pull.repository.commit({"new_ds_config.json": changed}), base=base)
    for _ in range(2):
        assert run(["ci", "github", "--fail-on", "never"]) == 0
    (found,) = github.reviewed
    assert (found["path"], found["line"], found["side"]) == ("new_ds_config.json", 5, "RIGHT")
    assert "start_line" not in found
    assert found["body"].startswith("[DS101](")
    assert found["body"].endswith('\n\n```suggestion\n    "overlap_comm": true,\n```\n')
    assert capsys.readouterr().err.splitlines() == [
        "comment on the pull request: created",
        "suggested 1 fix at changed lines",
        "comment on the pull request: left as it was",
    ]


def test_an_added_config_that_deepspeed_rejects_is_said_to_be(pull: Run, github: Github) -> None:
    pull.event(pull.repository.commit({"new/ds_config.json": STAGE_2.replace('"stage": 2', '"stage": 2, "x": 1')}))
    assert run(["ci", "github"]) == 1
    body = github.comments[0]["body"]
    assert "- **`new/ds_config.json`**: The config is added: ZeRO-2 · fp32 · batch 8. DeepSpeed rejects it" in body
    assert "<details open><summary>1 new finding</summary>" in body
    assert "- **error** [DS101]" in body


def test_findings_of_both_sides_are_apart_and_each_is_said_once(pull: Run, github: Github) -> None:
    noted = STAGE_2.replace("{\n", '{\n  "optimizer": {"type": "Adam", "eps": 1e-6},\n', 1)
    files = ("a_ds_config.json", "b_ds_config.json")
    base = pull.repository.commit(dict.fromkeys(files, noted))
    changed = noted.replace("8,", "16,")
    other = '{"train_batch_size": 4,\n"optimizer": {"type": "SGD", "eps": 1}}'
    pull.event(pull.repository.commit({**dict.fromkeys(files, changed), "c_ds_config.json": other}), base=base)
    assert run(["ci", "github"]) == 0
    body = github.comments[0]["body"]
    assert body.count("`eps` in `optimizer`") == 2
    new, before = body.partition("<summary>1 finding that was there before</summary>")[::2]
    assert "<summary>1 new finding</summary>" in new
    assert "`c_ds_config.json` line 2" in new
    assert "`a_ds_config.json` line 2" in before
    assert "`b_ds_config.json` line 2" in before


def test_only_what_the_pull_request_adds_counts_and_the_base_may_have_moved_on(pull: Run, capsys: Captured) -> None:
    pull.repository.git("checkout", "--quiet", "-b", "feature")
    head = pull.repository.commit({"other_ds.json": STAGE_3})
    pull.repository.git("checkout", "--quiet", "main")
    base = pull.repository.commit({"ds_config.json": STAGE_3})
    pull.event(head, base=base)
    assert run(["ci", "github", "--fail-on", "never", "--no-comment"]) == 0
    assert "other_ds.json" in capsys.readouterr().out
    assert "ds_config.json" not in pull.read("GITHUB_STEP_SUMMARY").replace("other_ds.json", "")


def merged_clone(pull: Run, tmp_path: Path, depth: int) -> Path:
    """Return what actions/checkout makes of a pull request: its merge with the base, in a clone of some depth."""
    pull.repository.git("checkout", "--quiet", "-b", "feature")
    head = pull.repository.commit({"ds_config.json": STAGE_3})
    pull.repository.git("checkout", "--quiet", "main")
    pull.repository.commit({"notes.txt": "meanwhile"})
    pull.repository.git("merge", "--quiet", "--no-ff", "--no-edit", "feature")
    pull.event(head)
    clone = tmp_path / "clone"
    pull.repository.git("clone", "--quiet", f"--depth={depth}", pull.repository.folder.as_uri(), str(clone))
    return clone


def test_a_checkout_of_depth_2_is_enough(
    pull: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(merged_clone(pull, tmp_path, 2)))
    assert run(["ci", "github", "--fail-on", "never", "--no-comment"]) == 0
    assert "file=ds_config.json,line=4" in capsys.readouterr().out


def test_a_checkout_of_depth_1_says_what_to_write(
    pull: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(merged_clone(pull, tmp_path, 1)))
    assert run(["ci", "github", "--fail-on", "never", "--no-comment"]) == 2
    assert "give actions/checkout the input `fetch-depth: 0`" in " ".join(capsys.readouterr().err.split())


def test_pull_request_target_is_refused(pull: Run, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    pull.event(pull.repository.commit({"ds_config.json": STAGE_3}))
    monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request_target")
    assert run(["ci", "github", "--fail-on", "never"]) == 2
    assert "use `on: pull_request`" in capsys.readouterr().err


def test_a_push_compares_what_was_pushed_and_a_new_branch_asks_for_a_range(pull: Run, tmp_path: Path) -> None:
    head = pull.repository.commit({"ds_config.json": STAGE_3})
    path = tmp_path / "push.json"
    about = {"GITHUB_EVENT_NAME": "push", "GITHUB_EVENT_PATH": str(path), "GITHUB_REPOSITORY": "octo/train"}
    path.write_text(json.dumps({"before": pull.base, "after": head}), encoding="utf-8")
    assert revisions(read_event(about), pull.repository.folder) == f"{pull.base}..{head}"
    path.write_text(json.dumps({"before": "0" * 40, "after": head}), encoding="utf-8")
    with pytest.raises(EventError, match=r"give --git BASE\.\.\.HEAD"):
        revisions(read_event(about), pull.repository.folder)


def test_a_merge_queue_compares_the_group(pull: Run, tmp_path: Path) -> None:
    head = pull.repository.commit({"ds_config.json": STAGE_3})
    path = tmp_path / "group.json"
    path.write_text(json.dumps({"merge_group": {"base_sha": pull.base, "head_sha": head}}), encoding="utf-8")
    about = {"GITHUB_EVENT_NAME": "merge_group", "GITHUB_EVENT_PATH": str(path)}
    assert revisions(read_event(about), pull.repository.folder) == f"{pull.base}..{head}"


@pytest.mark.parametrize(
    "payload",
    [
        "[]",
        "{",
        '{"pull_request": 3, "number": "7"}',
        '{"pull_request": {"base": {"sha": "--output=x"}, "head": {"sha": "$(id)"}}}',
    ],
)
def test_an_event_that_is_none_is_exit_code_2(pull: Run, payload: str) -> None:
    Path(pull.variables["GITHUB_EVENT_PATH"]).write_text(payload, encoding="utf-8")
    assert run(["ci", "github", "--fail-on", "never", "--no-comment"]) == 2


def test_outside_of_github_a_range_is_enough(pull: Run, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    head = pull.repository.commit({"ds_config.json": STAGE_3})
    for name in pull.variables:
        monkeypatch.delenv(name)
    monkeypatch.chdir(pull.repository.folder)
    assert run(["ci", "github", "--fail-on", "never"]) == 2
    assert "this runs in GitHub Actions" in capsys.readouterr().err
    assert run(["ci", "github", "--fail-on", "never", "--git", f"{pull.base}...{head}", "--report", "report.md"]) == 0
    assert (pull.repository.folder / "report.md").read_text(encoding="utf-8").startswith("## DeepSpeed configs")


def test_nothing_in_a_file_name_or_a_value_becomes_a_command_or_markdown(pull: Run, capsys: Captured) -> None:
    name = "ds\n::error::x,y:[a](b) `@octocat` <img src=q>.json"
    value = "`` <script> @octocat `` \\n::warning::z"
    config = STAGE_2.replace("{\n", '{\n  "optimizer": {"type": "' + value + '"},\n', 1)
    pull.repository.commit({name: STAGE_2})
    pull.event(pull.repository.commit({name: config}), base=pull.repository.git("rev-parse", "HEAD~1").stdout.strip())
    assert run(["ci", "github", "--fail-on", "never", "--no-comment"]) in {0, 1}
    out = capsys.readouterr().out
    assert out
    assert all(
        line.startswith(("::error file=ds%0A", "::warning file=ds%0A", "::notice file=ds%0A"))
        for line in out.splitlines()
    )
    outside = re.sub(r"`[^`\n]*`|<code>[^<]*</code>|\(https://[\w./%-]*#L\d+\)", "", pull.read("GITHUB_STEP_SUMMARY"))
    assert "octocat" not in outside.replace("&#64;octocat", "")
    assert "<img" not in outside
    assert "<script" not in outside


@pytest.mark.broad
def test_a_large_report_fits_into_a_comment(pull: Run, github: Github) -> None:
    many = {f"configs/ds_{number}.json": STAGE_2 for number in range(120)}
    base = pull.repository.commit(dict(many))
    head = pull.repository.commit({name: STAGE_3.replace("8", f"{64 + at}") for at, name in enumerate(many)})
    pull.event(head, base=base)
    assert run(["ci", "github", "--fail-on", "never"]) == 0
    body = github.comments[0]["body"]
    assert 10_000 < len(body) <= 65_000
    assert re.search(r"\*The details of \d+ configs do not fit here\.\*", body)
    assert body.count("- **`configs/ds_") == 120
    assert body.count("<details") == body.count("</details>")


def test_a_token_goes_to_https_only_and_to_a_repository() -> None:
    with pytest.raises(CommentError, match="which is not https"):
        Api("http://example.org", "t", "octo/train").post(7, "x", MARKER, needed=True)
    with pytest.raises(CommentError, match="is no repository"):
        Api("https://api.github.com", "t", "../../x").post(7, "x", MARKER, needed=True)


def test_line_ends_as_github_returns_them_are_no_change(github: Github) -> None:
    github.comments = [{"id": 1, "user": {"login": BOT}, "body": f"{MARKER}\r\nword\r\n"}]
    api = Api(github.address, "t", "octo/train")
    assert api.post(7, f"{MARKER}\nword\n", MARKER, needed=True) is Posted.SAME


@pytest.mark.skipif(shutil.which("bash") is None, reason="the action is a bash script")
def test_the_step_of_the_action_runs_the_command_with_its_inputs(pull: Run, github: Github, tmp_path: Path) -> None:
    pull.event(
        pull.repository.commit(
            {"ds_config.json": STAGE_3, "left out.json": ADDED.replace("4", "8"), "in side/ds.json": ADDED}
        )
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nshift\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    made = action()
    step = next(step for step in made["runs"]["steps"] if step.get("id") == "run")
    inputs = {f"${{{{ inputs.{name} }}}}": str(held["default"]) for name, held in made["inputs"].items()}
    inputs |= {
        "${{ inputs.fail-on }}": "never",
        "${{ inputs.paths }}": "ds_config.json\nin side\n",
        "${{ inputs.token }}": "secret-token",
    }
    given = {name: inputs[value] for name, value in step["env"].items()}
    script = tmp_path / "step.sh"
    script.write_text(step["run"], encoding="utf-8")
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        env={**environment(), **pull.variables, **given, "DSMIGRATE_PYTHON": str(python)},
        cwd=pull.repository.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "file=ds_config.json,line=4" in ran.stdout
    assert "file=in side/ds.json" in ran.stdout
    assert "left out" not in ran.stdout
    assert len(github.comments) == 1
