"""Start the runner as the package `runner`, wherever its folder lies; nothing of ours is on the path of imports."""

import gc
import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location

if __name__ == "__main__":
    gc.disable()  # imports only add objects; looking for garbage among them takes a tenth of the start
    spec = spec_from_file_location("runner", f"{__file__.rpartition('/')[0]}/__init__.py")
    assert spec is not None
    sys.modules["runner"] = module_from_spec(spec)
    importlib.import_module("runner.nursery").main(sys.argv[1])
