# The targets of each package; everything is installed into the .venv of the repository.
ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/..)
HERE := $(patsubst $(ROOT)/%,%,$(CURDIR))

.PHONY: test
test:
	$(MAKE) -C $(ROOT) --no-print-directory develop
	cd $(ROOT) && .venv/bin/pytest $(HERE)/tests -n 2 --dist loadgroup
