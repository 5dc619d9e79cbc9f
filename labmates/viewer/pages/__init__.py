"""Pages of the viewer, shared by server and export: each is a function of the read data and of links."""
