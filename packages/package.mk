# The targets of each package; everything is installed into the .venv of the repository.
ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/..)
HERE := $(patsubst $(ROOT)/%,%,$(CURDIR))

.PHONY: test bench
test:
	$(MAKE) -C $(ROOT) --no-print-directory develop
	cd $(ROOT) && .venv/bin/pytest $(HERE)/tests -n 2 --dist loadgroup

# make bench NAME=MODULE ARGS="--json file.json"
bench:
	cd $(ROOT) && PYTHONPATH=.:$(HERE) .venv/bin/python -m benchmarks.$(NAME) $(ARGS)
