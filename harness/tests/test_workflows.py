"""The workflows: a fork's code never runs on a GPU runner, and nothing runs that is not pinned."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").iterdir())
NIGHTLY: Final = ROOT / ".github" / "workflows" / "nightly.yml"
KEY: Final = "key: hypothesis-${{ matrix.gpu }}-${{ github.run_id }}-${{ github.run_attempt }}\n"
OURS: Final = {"schedule", "workflow_dispatch"}
PINNED: Final = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")

every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def block(text: str, key: str) -> list[str]:
    """Return the lines below a top-level key."""
    found = re.search(rf"^{key}:\n((?:[ ].*\n|\n)*)", text, re.MULTILINE)
    assert found, f"no {key}: of its own"
    return [line for line in found[1].splitlines() if line.strip()]


def triggers(text: str) -> set[str]:
    """Return what starts a workflow."""
    return {line.strip().rstrip(":") for line in block(text, "on") if re.match(r"  \w", line)}


def step(text: str, *marks: str) -> str:
    """Return the one step that holds all of these."""
    steps = re.split(r"^ {6}- ", text, flags=re.MULTILINE)[1:]
    (found,) = (each for each in steps if all(mark in each for mark in marks))
    return found


def test_there_are_two() -> None:
    """One for our GPUs, one for everybody."""
    assert [path.name for path in WORKFLOWS] == ["nightly.yml", "pull-request.yml"]


@every_workflow
def test_only_we_start_what_runs_on_our_machines(path: Path) -> None:
    """Neither a pull request nor a push; what holds a secret or a token runs for no fork."""
    text = path.read_text("utf-8")
    assert "pull_request_target" not in text
    assert "secrets." not in text
    if "self-hosted" in text:
        assert triggers(text) == OURS


def test_the_check_of_triggers_can_fail() -> None:
    """In each of the ways YAML has to write them."""
    spelled = "on:\n  pull_request:\n  schedule:\n    - cron: x\njobs:\n"
    assert triggers(spelled) == {"pull_request", "schedule"}
    for short in ("on: pull_request\n", "on: [push, pull_request]\n"):
        with pytest.raises(AssertionError, match="no on: of its own"):
            triggers(short)


@every_workflow
def test_the_token_reads_only(path: Path) -> None:
    """And is not left in the checkout."""
    text = path.read_text("utf-8")
    assert block(text, "permissions") == ["  contents: read"]
    assert text.count("permissions:") == 1
    assert text.count("actions/checkout@") == text.count("persist-credentials: false") == 1


@every_workflow
def test_actions_are_pinned_by_commit(path: Path) -> None:
    """With the release in a comment; a tag can be moved, a commit cannot."""
    used = re.findall(r"uses: (.*)", path.read_text("utf-8"))
    assert used
    assert [action for action in used if not PINNED.fullmatch(action)] == []


@every_workflow
def test_no_text_of_others_reaches_a_shell(path: Path) -> None:
    """Expressions are filled in before the shell sees them: none stands in a command."""
    commands = re.findall(r"run: (?:\|\n((?: {10}.*\n)+)|(.*))", path.read_text("utf-8"))
    assert commands
    assert not any("${{" in line for command in commands for line in command)


@every_workflow
def test_the_environments_exist(path: Path) -> None:
    """What tox is asked for stands in tox.ini."""
    tox = ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    known = {section.removeprefix("testenv:").partition("{")[0] for section in tox.sections()}
    asked = set(re.findall(r"tox -e (\S+)", path.read_text("utf-8")))
    assert asked
    assert asked <= known


def test_the_night_keeps_its_results_whatever_happens() -> None:
    """build/, the inputs that failed, and room for one job on a card."""
    text = NIGHTLY.read_text("utf-8")
    assert "actions/upload-artifact@" in step(text, "if: always()", "include-hidden-files: true")
    for needed in ("build/\n", ".hypothesis/nightly/", "group: gpu-"):
        assert needed in text


def test_an_input_that_failed_is_kept_by_a_red_night() -> None:
    """Alone, actions/cache saves after a green job; a key is written once, so each attempt has one.

    The night after finds it by the key's beginning.
    """
    text = NIGHTLY.read_text("utf-8")
    assert "actions/cache@" not in text
    restored, saved = step(text, "actions/cache/restore@"), step(text, "actions/cache/save@")
    assert "if: always()" in saved
    assert text.index(restored) < text.index("tox -e nightly") < text.index(saved)
    for line in ("path: .hypothesis/nightly\n", KEY):
        assert line in restored
        assert line in saved
    found = re.search(r"restore-keys: (.*)", restored)
    assert found
    assert KEY.startswith(f"key: {found[1]}")


def test_the_matrix_names_the_folders_of_baselines() -> None:
    """A runner's label is the slug of its GPU."""
    text = NIGHTLY.read_text("utf-8")
    found = re.search(r"gpu: \[(.*)\]", text)
    assert found
    for label in found[1].split(", "):
        assert (ROOT / "baselines" / label).is_dir()
