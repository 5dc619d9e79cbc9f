"""HTML pages: templates, links, drawings and safe text, independent of experiments."""
