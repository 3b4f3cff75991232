"""MkDocs hook: files of the repository outside docs that the manual links become part of the site."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OUTSIDE = "repository"
"""Folder of the site for files outside docs."""
LINK = re.compile(r"(\]\()(?!https?:|#)([^)#\s]+)")


def in_repository(uri: str) -> str:
    """Path in the repository of a file of the site."""
    return uri.removeprefix(f"{OUTSIDE}/") if uri.startswith(f"{OUTSIDE}/") else f"docs/{uri}"


def in_site(path: str) -> str:
    """Inverse of :func:`in_repository`."""
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{OUTSIDE}/{path}"


def linked(text: str, source: str) -> set[str]:
    """Paths in the repository that the Markdown ``text`` of the file ``source`` links."""
    folder = posixpath.dirname(source)
    return {posixpath.normpath(posixpath.join(folder, target)) for _, target in LINK.findall(text)}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what the pages link outside docs, and what those files link, if it is a file."""
    pages = [file for file in files.documentation_pages() if file.src_uri.endswith(".md")]
    while pages:
        page = pages.pop()
        for path in sorted(linked(page.content_string, in_repository(page.src_uri))):
            uri = in_site(path)
            if uri.startswith(OUTSIDE) and (ROOT / path).is_file() and files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
                pages += [file for file in files if file.src_uri == uri and uri.endswith(".md")]
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Links between files of the repository, as links between files of the site."""
    source = in_repository(page.file.src_uri)
    folder = posixpath.dirname(page.file.src_uri)

    def moved(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        uri = in_site(path)
        if files.get_file_from_path(uri) is None:  # a folder, or a file that only the repository has
            return match[0]
        return f"{match[1]}{posixpath.relpath(uri, folder)}"

    return LINK.sub(moved, markdown)
