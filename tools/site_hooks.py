"""What mkdocs asks while it builds the site (mkdocs.yml): pages that do not lie in docs/, and links that leave it.

CHANGELOG.md, CONTRIBUTING.md    become pages of the site
docs/decisions                   gets a page that lists the records, and each record a place in the navigation
a link to a folder               leads to that folder's page
a link to a file of the code     shows its text alone: the site is the documentation, not the repository
scripts                          are taken from .docs, where `make docs-site` has put them, so that a page asks nobody
"""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).resolve().parent.parent
OUTSIDE: Final = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
SCRIPTS: Final = {"mermaid.min.js": "", "iframe-worker.min.js": "https://unpkg.com/iframe-worker/shim"}
"""Files of .docs, and the address that the theme has for each; none for mermaid, which it looks for among a page's own scripts."""
STYLE: Final = ".md-grid { max-width: 84rem }\n"
"""Pages wide enough for what psql prints."""
LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
BARRED: Final = re.compile(r"(?<!`)`([^`\n]*\\\|[^`\n]*)`(?!`)")
FENCE: Final = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)


def _bars(found: re.Match[str]) -> str:
    """Return a code span of a table as HTML: a bar behind a backslash is a bar for GitHub, and both for Python's Markdown."""
    return f"<code>{escape(found[1]).replace(chr(92) + '|', '&#124;')}</code>"


def _scripts() -> dict[str, Path]:
    """Return the scripts that are there, by their names within the site."""
    return {f"assets/{name}": ROOT / ".docs" / name for name in SCRIPTS if (ROOT / ".docs" / name).exists()}


def _records() -> list[Path]:
    return sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def _title(page: Path) -> str:
    return page.read_text("utf-8").partition("\n")[0].lstrip("# ")


def _list_of_records() -> str:
    lines = [f"- [{_title(record)}]({record.name})" for record in _records()]
    return (
        "# Decisions\n\nOne record for each choice that is not the obvious one.\n\n" + "\n".join(lines) + "\n"
    )


def on_config(config: Any) -> Any:
    """Give each record a place in the navigation, and use the copies of scripts that are there."""
    names = ["decisions/index.md", *(f"decisions/{record.name}" for record in _records())]
    for section in config["nav"]:
        for pages in section.values():
            for page in pages if isinstance(pages, list) else []:
                if isinstance(page, dict) and page.get("Decisions") == "decisions/":
                    page["Decisions"] = names
    for name in _scripts():
        address = SCRIPTS[Path(name).name]
        if address:
            shims = config["extra"].get("polyfills", [])
            config["extra"]["polyfills"] = [name if shim == address else shim for shim in shims]
        else:
            config["extra_javascript"].append(name)
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that do not lie in docs/."""
    for name, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text("utf-8")))
    files.append(File.generated(config, "assets/site.css", content=STYLE))
    files.append(File.generated(config, "decisions/index.md", content=_list_of_records()))
    for name, script in _scripts().items():
        files.append(File.generated(config, name, abs_src_path=str(script)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the page with its links as the site has them."""
    here = page.file.src_uri
    at = next((Path(name) for name, shown in OUTSIDE.items() if shown == here), Path("docs") / here)

    def led(found: re.Match[str]) -> str:
        mark, text, target = found.groups()
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z][a-z+.-]*:", target) or not path:
            return found[0]
        there = Path(os.path.normpath(at.parent / path))
        if (ROOT / there).is_dir() and there.is_relative_to("docs"):
            there /= "index.md"
        if str(there) in OUTSIDE:
            there = Path("docs") / OUTSIDE[str(there)]
        if not there.is_relative_to("docs"):
            return text
        relative = os.path.relpath(there.relative_to("docs"), Path(here).parent)
        return f"{mark}[{text}]({relative}{'#' + anchor if anchor else ''})"

    parts = FENCE.split(markdown)
    return "".join(
        part if part.startswith("```") else BARRED.sub(_bars, LINK.sub(led, part)) for part in parts
    )
