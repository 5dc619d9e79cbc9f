"""Writing pages that people read: templates, links, drawings and safe text. No experiment is known here."""
