# ruff: noqa
# mypy: ignore-errors
import json, re, warnings
import numpy as np, pandas as pd

warnings.filterwarnings("ignore")
try:
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
except ImportError:
    pass
