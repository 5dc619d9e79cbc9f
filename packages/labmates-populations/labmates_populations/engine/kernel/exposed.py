"""What players that share a process see of modules: functions and types that can hold nothing for another player."""

from __future__ import annotations

import bisect
import collections
import dataclasses
import enum
import functools
import heapq
import importlib
import itertools
import math
import random
import statistics
import types
import typing
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from labmates_populations.engine.kernel import interface
from labmates_populations.engine.kernel.names import DRAWS, interfaces

OWN = "strategy"
"""The module of all functions and classes of a strategy."""


def words(text: str) -> list[str]:
    """The words of a text: a list of them would be longer."""
    return text.split()


_HISTORIES = interface.PlayerHistory, interface.PaperHistory, interface.ActionHistory


def own(thing: Any) -> Any:
    """A thing whose attributes a player may change: an instance, a class or a function of its code, or a history."""
    kind = type(thing)
    made = issubclass(kind, (type, types.FunctionType)) and thing.__module__ == OWN
    if made or kind.__module__ == OWN or issubclass(kind, _HISTORIES):
        return thing
    raise dataclasses.FrozenInstanceError(f"an attribute of {kind.__name__} can't be changed or read here")


class _Stand(type):
    """The class of stands-in for types."""

    def __instancecheck__(cls, thing: Any) -> bool:
        return cls is Array and type(thing) is np.ndarray

    def __getitem__(cls, _: Any) -> Any:
        return cls


class Array(metaclass=_Stand):
    """Stands in for `numpy.ndarray`, which could make an array of any memory."""


class Annotation(metaclass=_Stand):
    """Stands in for types of annotations."""


class _OneByOne(enum.EnumType):
    def __call__(cls, value: Any) -> Any:  # type: ignore[override]
        """The member of a value; enumerations are made by classes alone."""
        return super().__call__(value)


class _Enum(enum.Enum, metaclass=_OneByOne):
    """The base of enumerations."""


class _IntEnum(enum.IntEnum, metaclass=_OneByOne):
    """The base of enumerations of numbers."""


class Base(interface.BaseStrategy):
    """The base of strategies."""

    def __init__(self, game_description: Any) -> None:
        own(self).game_description = game_description


class _Quiet:
    """What `numpy.errstate` returns: warnings have no reader here, and the setting would be that of all players."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def _errors(**settings: str) -> _Quiet:
    if {*settings.values()} - {"ignore", "warn"}:
        raise TypeError("errors of numpy can't be raised here")
    return _Quiet()


def _decorates(made: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of classes, for a player's own ones."""

    def decorate(thing: Any = None, **options: Any) -> Any:
        return partial(decorate, **options) if thing is None else made(own(thing), **options)

    return decorate


_FUNCTIONS = (types.FunctionType, type(np.mean), type(np.random.default_rng))


def still(thing: Any) -> Any:
    """A function that can't hold attributes."""
    return thing.__call__ if type(thing) in _FUNCTIONS else thing


def some(module: Any, names: str | Iterable[str]) -> dict[str, Any]:
    """Those names of a module that it has, with their things."""
    names = names.split() if isinstance(names, str) else names
    return {name: still(getattr(module, name)) for name in names if hasattr(module, name)}


def _raw(module: Any, names: str) -> dict[str, Any]:
    """The same, as they are: `typing.NamedTuple` is a function, but a base of classes."""
    return {name: getattr(module, name) for name in names.split()}


def _public(module: Any) -> dict[str, Any]:
    return some(module, (name for name in dir(module) if not name.startswith("_")))


_NUMPY = (
    "abs absolute add all allclose amax amin any append apply_along_axis arange arccos arcsin arctan arctan2 argmax "
    "argmin argpartition argsort argwhere around array array_equal array_split asarray atleast_1d atleast_2d average "
    "bincount bitwise_and bitwise_or bitwise_xor bool bool_ broadcast_to cbrt ceil choose clip column_stack compress "
    "concatenate convolve copy corrcoef correlate cos cosh count_nonzero cov cross cumprod cumsum delete diag "
    "diagonal diff digitize divide divmod dot e ediff1d einsum equal exp exp2 expand_dims expm1 extract eye fabs fix "
    "flatnonzero finfo flip fliplr flipud float16 float32 float64 float_power floating floor floor_divide fmax fmin "
    "fmod full full_like gcd generic geomspace gradient greater greater_equal heaviside histogram hstack hypot "
    "identity iinfo inexact inf inner insert int16 int32 int64 int8 int_ integer interp intersect1d invert isclose "
    "isfinite isin isinf isnan isscalar kron lcm less less_equal lexsort linspace log log10 log1p log2 logaddexp "
    "logical_and logical_not logical_or logical_xor logspace matmul max maximum mean median meshgrid min minimum mod "
    "moveaxis multiply nan nan_to_num nanargmax nanargmin nancumsum nanmax nanmean nanmedian nanmin nanpercentile "
    "nanprod nanquantile nanstd nansum nanvar negative newaxis nonzero not_equal number ones ones_like outer pad "
    "partition percentile pi piecewise poly polyadd polyder polydiv polyfit polyint polymul polysub polyval positive "
    "power prod ptp quantile ravel real reciprocal remainder repeat reshape resize roll roots rot90 round "
    "searchsorted select setdiff1d setxor1d shape sign signedinteger sin sinc sinh size sort split sqrt square "
    "squeeze stack std subtract sum swapaxes take tan tanh tensordot tile trace transpose trapezoid tri tril triu "
    "trim_zeros true_divide trunc uint16 uint32 uint64 uint8 union1d unique unsignedinteger unwrap vander var vdot "
    "vectorize vsplit vstack where zeros zeros_like"
)
EXPOSED: dict[str, dict[str, Any]] = {
    "math": _public(math),
    "numpy": some(np, _NUMPY) | {
        "empty": np.zeros, "empty_like": still(np.zeros_like), "ndarray": Array, "errstate": still(_errors),
        "seterr": still(_errors),
    },
    "numpy.linalg": some(np.linalg, "LinAlgError cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_power "
                          "matrix_rank norm pinv qr slogdet solve svd"),
    "numpy.lib.stride_tricks": some(np.lib.stride_tricks, "sliding_window_view"),
    "numpy.typing": {"NDArray": Annotation, "ArrayLike": Annotation, "DTypeLike": Annotation},
    "dataclasses": some(dataclasses, "asdict astuple field fields is_dataclass replace FrozenInstanceError")
    | {"dataclass": still(_decorates(dataclasses.dataclass))},
    "enum": {"Enum": _Enum, "IntEnum": _IntEnum, "auto": enum.auto, "unique": still(enum.unique)},
    "typing": _raw(typing, "Any Callable ClassVar Collection Counter DefaultDict Deque Dict Final FrozenSet Generator "
                    "Iterable Iterator List Literal Mapping MutableMapping NamedTuple Optional Sequence Set Tuple Type "
                    "Union cast"),
    "collections": some(collections, "ChainMap Counter OrderedDict defaultdict deque namedtuple"),
    "functools": some(functools, "cache cached_property cmp_to_key lru_cache partial reduce")
    | {"total_ordering": still(_decorates(functools.total_ordering))},
    "bisect": _public(bisect),
    "heapq": _public(heapq),
    "itertools": _public(itertools),
    "statistics": some(statistics, "StatisticsError correlation covariance fmean geometric_mean harmonic_mean "
                        "linear_regression mean median median_grouped median_high median_low mode multimode pstdev "
                        "pvariance quantiles stdev variance"),
    "__future__": some(importlib.import_module("__future__"), "annotations"),
}  # fmt: skip
"""What players get of each module, beside the random ones and ours."""
OF_STATES = frozenset(
    words(
        "beta binomial bytes chisquare choice dirichlet exponential gamma geometric get_state gumbel "
        "hypergeometric laplace logistic lognormal multinomial multivariate_normal negative_binomial normal "
        "pareto permutation poisson power rand randint randn random random_integers random_sample rayleigh "
        "set_state shuffle standard_cauchy standard_exponential standard_gamma standard_normal standard_t "
        "triangular uniform vonmises wald weibull"
    )
)
CHANCES = sorted({*DRAWS, "binomialvariate", "getstate", "randbytes", "seed", "setstate"})
RANDOM = {"random": frozenset({*CHANCES, "Random"}), "numpy.random": OF_STATES | {
    "default_rng", "RandomState", "seed", "Generator", "BitGenerator"}}  # fmt: skip
"""The names of modules of random numbers."""
_OF_TYPES = {
    name
    for known in (str, list, dict, set, frozenset, tuple, int, float, complex, bytes, range, slice,
                  collections.deque, collections.Counter, collections.OrderedDict, collections.ChainMap)
    for name in dir(known)
    if not name.startswith("_")
} - {"format", "format_map"}  # fmt: skip
SAFE: frozenset[str] = frozenset().union(
    _OF_TYPES,
    words("T all any argmax argmin argpartition argsort astype choose clip compress conj copy cumprod cumsum "
          "diagonal dot dtype eps fill flat flatten is_integer item itemsize kind max mean min nbytes ndim nonzero "
          "partition prod ptp put ravel repeat reshape round searchsorted shape size sort squeeze std sum swapaxes "
          "take tolist trace transpose var"),
    words("C D actions capacity cooperate current_stock defect flip game_description k m my_actions my_payoffs "
          "n_players n_rounds name opponent_actions opponent_cooperators opponent_counts opponent_payoffs "
          "opponent_sources own_source round_number table value"),
    words("args cache_clear cache_info close deleter getter send setter _asdict _fields _replace"),
    words("integers permuted standard_normal"),
    *map(frozenset, EXPOSED.values()),
    *RANDOM.values(),
    {part for module in EXPOSED for part in module.split(".")},
    {name for module in interfaces(Base, paper=False).values() for name in vars(module) if not name.startswith("_")},
)  # fmt: skip
"""Attributes that give access to nothing shared, whatever they are read of."""
_READ_OF: tuple[Any, ...] = (
    str, list, dict, np, np.ndarray, np.generic, np.dtype, np.ufunc, np.vectorize, np.random.Generator,
    np.random.RandomState, math, random, random.Random, statistics, itertools, functools, collections,
    dataclasses, enum, typing, types.FunctionType, types.MethodType, types.BuiltinFunctionType,
    types.GeneratorType, types.CodeType,
    types.FrameType, types.TracebackType, types.ModuleType, type, property, partial, memoryview, enum.Enum,
    AttributeError(), ImportError(), StopIteration(), SystemExit(), UnicodeDecodeError, dataclasses.Field,
    interface.SeenHistory, interface.Record, interface.GameDescription, staticmethod,
)  # fmt: skip
AMBIGUOUS = frozenset(name for thing in _READ_OF for name in dir(thing)) - SAFE
"""Attributes that may mean something else than a player's own."""
