"""What the build of the site does beside Markdown: pages made from the code and from examples, and formulas."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from sitegen.commands import command_pages
from sitegen.coverage import coverage_page
from sitegen.examples import example_pages
from sitegen.gallery import gallery_links, write_gallery
from sitegen.maths import draw_formulas
from sitegen.reference import reference_pages

PACKAGES = sorted(Path(__file__).parents[2].glob("packages/*/docs"))


@cache
def generated() -> dict[str, str]:
    """Return the Markdown of all generated pages by path."""
    coverage = ("reproduction/coverage.md", coverage_page())
    return dict([*reference_pages(), *command_pages(), *example_pages(), coverage])


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put all pages of a folder, committed or generated, into the navigation, where it says ``folder/*``."""
    folders = [Path(config.docs_dir), *PACKAGES]
    committed = sorted(path.relative_to(folder).as_posix() for folder in folders for path in folder.rglob("*.md"))
    committed.sort(key=lambda path: not path.endswith("README.md"))
    config.nav = _filled(config.nav, [*committed, *generated()])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the other packages, each at its place below ``docs/``, and the generated ones."""
    for folder in PACKAGES:
        for file in filter(Path.is_file, folder.rglob("*")):
            place = file.relative_to(folder).as_posix()
            files.append(File(place, str(folder), config.site_dir, config.use_directory_urls))
    for path, text in generated().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """List the sample's studies and runs on the page of the gallery."""
    return (
        markdown.replace("<!-- links to the pages -->", gallery_links())
        if page.file.src_uri == "gallery/README.md"
        else markdown
    )


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draw formulas."""
    return draw_formulas(html, page.file.src_uri)


def on_post_build(config: MkDocsConfig) -> None:
    """Write the pages of the gallery."""
    write_gallery(Path(config.site_dir) / "gallery" / "pages")


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name the dialog of the search, which the theme leaves without a name: screen readers say it."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')


def _filled(nav: Any, pages: list[str]) -> Any:
    match nav:
        case str() if nav.endswith("/*"):
            folder = nav.removesuffix("*")
            return [path for path in pages if path.startswith(folder)]
        case list():
            return [filled for entry in nav if (filled := _filled(entry, pages))]
        case dict():
            return {title: filled for title, entry in nav.items() if (filled := _filled(entry, pages))}
    return nav
