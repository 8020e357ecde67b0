"""The site of the documentation, which `make docs` builds from the same pages that people read as files."""

from importlib.metadata import version as version_of

project = "Fencepost"
copyright = "the authors of Fencepost"
version = release = version_of("fencepost")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]

# The pages are Markdown as GitHub reads it: links to headings by their words, diagrams as fences.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

html_theme = "furo"
html_title = f"Fencepost {version}"
html_copy_source = False
html_show_sphinx = False

autodoc_member_order = "groupwise"
autodoc_typehints = "description"
autodoc_typehints_format = "short"
