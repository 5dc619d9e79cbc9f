"""Looking at runs in a browser: pages made on this machine, for nobody else, from a store that is only read."""
