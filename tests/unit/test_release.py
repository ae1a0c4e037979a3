"""A release is refused unless tag, package, changelog and citation agree."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "release.py"
WORKFLOWS = ROOT / ".github" / "workflows"
if not TOOL.exists() or not WORKFLOWS.exists():
    pytest.skip("this is not the repository", allow_module_level=True)
spec = importlib.util.spec_from_file_location("release", TOOL)
release = importlib.util.module_from_spec(spec)
spec.loader.exec_module(release)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.3\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-02\n\n- A thing.\n\n## [1.2.2]\n"
    )
    return tmp_path


def test_a_tree_that_agrees_with_its_tag_is_released(tree):
    assert release.contradictions("v1.2.3", tree) == []


@pytest.mark.parametrize("tag", ["1.2.3", "v1.2", "v1.2.3-final", "version1"])
def test_refuses_a_tag_that_is_no_version(tree, tag):
    (sentence,) = release.contradictions(tag, tree)
    assert tag in sentence


def test_names_every_file_that_has_another_version(tree):
    found = release.contradictions("v1.3.0", tree)
    assert [sentence.split()[0] for sentence in found] == [
        "pyproject.toml",
        "CITATION.cff",
        "CHANGELOG.md",
    ]


def test_refuses_a_section_without_a_change(tree):
    (tree / "CHANGELOG.md").write_text(
        "## [1.2.3] - 2026-01-02\n\n## [1.2.2] - 2025-01-01\n\n- x\n"
    )
    (sentence,) = release.contradictions("v1.2.3", tree)
    assert "lists no change" in sentence


@pytest.mark.parametrize("workflow", sorted(WORKFLOWS.glob("*.yml")), ids=lambda path: path.name)
def test_actions_are_pinned_by_hash(workflow):
    used = re.findall(r"uses: (\S+)", workflow.read_text(encoding="utf-8"))
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)] == []
