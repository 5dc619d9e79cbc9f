"""What players that share a process see of modules: functions and types that can hold nothing for another player."""

from __future__ import annotations
import __future__

import abc
import bisect
import collections
import collections.abc
import contextlib
import copy
import dataclasses
import enum
import fractions
import functools
import heapq
import itertools
import math
import operator
import random
import statistics
import string
import types
import typing
from _string import formatter_field_name_split  # type: ignore[import-not-found]
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


def look(thing: Any, name: Any, *default: Any) -> Any:
    """An attribute by a name that also means something elsewhere."""
    if type(name) is not str:
        raise TypeError("an attribute's name is a text")
    if name in SAFE:
        return getattr(thing, name, *default)
    if name.startswith("__"):
        raise TypeError(f"the attribute {name} can't be read here")
    if type(thing) is str and name in ("format", "format_map"):
        return partial(_formatted, thing, name == "format_map")
    if _is_own(thing) and (name not in AMBIGUOUS or _is_of(thing, name)):
        return getattr(thing, name, *default)
    if default and not hasattr(thing, name):
        return default[0]
    raise AttributeError(f"a {type(thing).__name__} has no attribute '{name}' here")


def _is_own(thing: Any) -> bool:
    try:
        own(thing)
    except AttributeError:
        return False
    return True


def _is_of(thing: Any, name: str) -> bool:
    """Whether the strategy's code set this attribute on an object that it made."""
    kinds = (*type(thing).__mro__, *(thing.__mro__ if isinstance(thing, type) else ()))
    made = any(name in vars(one) for one in kinds if one.__module__ == OWN)
    return made or name in getattr(thing, "__dict__", ())


class _Fields(string.Formatter):
    """Formats texts, with a look at the attributes that they name."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        """What a field names, and the argument of it that is used."""
        first, rest = formatter_field_name_split(field_name)
        found = self.get_value(first, args, kwargs)
        for is_attribute, name in rest:
            found = look(found, name) if is_attribute else found[name]
        return found, first


def _formatted(text: str, mapped: bool, /, *arguments: Any, **named: Any) -> str:
    return _Fields().vformat(text, () if mapped else arguments, arguments[0] if mapped else named)


def _attrgetter(*names: str) -> Callable[[Any], Any]:
    def got(thing: Any) -> Any:
        found = [functools.reduce(look, name.split("."), thing) for name in names]
        return found[0] if len(found) == 1 else tuple(found)

    return got


def _methodcaller(name: str, /, *arguments: Any) -> Callable[[Any], Any]:
    return lambda thing: look(thing, name)(*arguments)


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


_ENUMS = {
    name: types.new_class(name, (getattr(enum, name),), {"metaclass": _OneByOne})
    for name in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag")
}
"""The bases of enumerations."""


class Base(interface.BaseStrategy):
    """The base of strategies."""

    def __init__(self, game_description: Any) -> None:
        own(self).game_description = game_description


class _Abstract:
    """The base of abstract classes: `abc.ABC` would keep what is registered for all players."""


class _Quiet:
    """Stands in for settings of warnings: these have no reader here, and the setting would be that of all players."""

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


def _wraps(wrapped: Any, *_: Any) -> Callable[..., Any]:
    return lambda wrapper: functools.update_wrapper(own(wrapper), wrapped)


def _padded(array: Any, width: Any, mode: Any = "constant", **options: Any) -> Any:
    if mode == "empty":
        raise TypeError("memory that is not written can't be read here")
    return np.pad(array, width, mode, **options)


def _masked(data: Any, mask: Any = np.ma.nomask, *options: Any, **named: Any) -> Any:
    return np.ma.MaskedArray(data, mask, *options, **named)


def _copied(thing: Any) -> Any:
    """A copy; of a method it would be any attribute that the method's name says."""
    return thing if type(thing) is types.MethodType else copy.copy(thing)


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
    "abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis apply_over_axes arange "
    "arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array "
    "array2string array_equal array_equiv array_repr array_split array_str asanyarray asarray ascontiguousarray "
    "asfortranarray asin asinh astype atan atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett base_repr "
    "binary_repr bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or "
    "bitwise_right_shift bitwise_xor blackman block bool bool_ broadcast_arrays broadcast_shapes broadcast_to byte c_ "
    "can_cast cbrt cdouble ceil choose clip column_stack common_type complex128 complex64 complexfloating compress "
    "concat concatenate conj conjugate convolve copy copysign copyto corrcoef correlate cos cosh count_nonzero cov "
    "cross csingle cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees delete diag diag_indices "
    "diag_indices_from diagflat diagonal diff digitize divide divmod dot double dsplit dstack dtype e ediff1d einsum "
    "einsum_path equal euler_gamma exp exp2 expand_dims expm1 extract eye fabs False_ fill_diagonal finfo fix "
    "flatnonzero flip fliplr flipud float16 float32 float64 float_power floating floor floor_divide fmax fmin fmod "
    "format_float_positional format_float_scientific frexp fromfunction fromiter frompyfunc full full_like gcd "
    "generic geomspace gradient greater greater_equal half hamming hanning heaviside histogram histogram2d "
    "histogram_bin_edges histogramdd hsplit hstack hypot i0 identity iinfo imag index_exp indices inexact inf inner "
    "insert int16 int32 int64 int8 int_ intc integer interp intersect1d intp invert isclose iscomplex iscomplexobj "
    "isfinite isin isinf isnan isneginf isposinf isreal isrealobj isscalar issubdtype iterable ix_ kaiser kron lcm "
    "ldexp left_shift less less_equal lexsort linspace log log10 log1p log2 logaddexp logaddexp2 logical_and "
    "logical_not logical_or logical_xor logspace long longdouble longlong mask_indices matmul matrix_transpose matvec "
    "max maximum mean median meshgrid mgrid min min_scalar_type minimum mod modf moveaxis multiply nan nan_to_num "
    "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile "
    "nanstd nansum nanvar ndenumerate ndim ndindex negative newaxis nextafter nonzero not_equal number object_ ogrid "
    "ones ones_like outer packbits partition percentile permute_dims pi piecewise place poly poly1d polyadd polyder "
    "polydiv polyfit polyint polymul polysub polyval positive pow power prod promote_types ptp put put_along_axis "
    "putmask quantile r_ rad2deg radians ravel ravel_multi_index real real_if_close reciprocal remainder repeat "
    "reshape resize result_type right_shift rint roll rollaxis roots rot90 round row_stack s_ searchsorted select "
    "setdiff1d setxor1d shape short sign signbit signedinteger sin sinc single sinh size sort sort_complex spacing "
    "split sqrt square squeeze stack std str_ subtract sum swapaxes take take_along_axis tan tanh tensordot tile "
    "trace transpose trapezoid tri tril tril_indices tril_indices_from trim_zeros triu triu_indices triu_indices_from "
    "True_ true_divide trunc ubyte uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong union1d unique "
    "unique_all unique_counts unique_inverse unique_values unpackbits unravel_index unsignedinteger unstack unwrap "
    "ushort vander var vdot vecdot vecmat vectorize vsplit vstack where zeros zeros_like"
)
_POLYNOMIALS = [
    getattr(np.polynomial, name) for name in words("Chebyshev Hermite HermiteE Laguerre Legendre Polynomial")
]
for _one in _POLYNOMIALS:  # arrays that all of a class share, over memory that nobody can make writable
    _one.domain, _one.window = (np.frombuffer(each.tobytes(), each.dtype) for each in (_one.domain, _one.window))
MEMORY = frozenset({"buffer", "like", "where"})
"""Arguments that name memory, or leave it unwritten."""
EXPOSED: dict[str, dict[str, Any]] = {
    "math": _public(math),
    "numpy": some(np, _NUMPY) | {
        "empty": np.zeros, "empty_like": still(np.zeros_like), "ndarray": Array, "errstate": still(_errors),
        "seterr": still(_errors), "pad": still(_padded),
    },
    "numpy.linalg": some(np.linalg, np.linalg.__all__),
    "numpy.fft": some(np.fft, np.fft.__all__),
    "numpy.char": some(np.char, set(np.char.__all__) - {"chararray"}),
    "numpy.strings": some(np.strings, np.strings.__all__),
    "numpy.ma": some(np.ma, "array average compressed count filled fix_invalid getdata is_masked "
                     "masked_equal masked_greater masked_greater_equal masked_inside masked_invalid masked_less "
                     "masked_less_equal masked_not_equal masked_outside masked_values masked_where max mean median "
                     "min nomask std sum var") | {"masked_array": still(_masked)},
    "numpy.polynomial": {one.__name__: one for one in _POLYNOMIALS},
    "numpy.polynomial.polynomial": some(np.polynomial.polynomial, "polyadd polyder polydiv polyfit polyfromroots "
                                        "polyint polymul polypow polyroots polysub polyval"),
    "numpy.lib": {},
    "numpy.lib.stride_tricks": some(np.lib.stride_tricks, "sliding_window_view"),
    "numpy.typing": {"NDArray": Annotation, "ArrayLike": Annotation, "DTypeLike": Annotation},
    "dataclasses": some(dataclasses, "asdict astuple field fields is_dataclass replace FrozenInstanceError InitVar "
                        "KW_ONLY MISSING")
    | {"dataclass": still(_decorates(dataclasses.dataclass))},
    "enum": _ENUMS | {"auto": enum.auto, "unique": still(enum.unique)},
    "typing": _raw(typing, "AbstractSet Annotated Any AnyStr Callable ChainMap ClassVar Collection Concatenate "
                   "Container Counter DefaultDict Deque Dict Final FrozenSet Generator Generic Hashable "
                   "ItemsView Iterable Iterator KeysView List Literal LiteralString Mapping MutableMapping "
                   "MutableSequence MutableSet NamedTuple Never NewType NoReturn NotRequired Optional "
                   "OrderedDict ParamSpec Required Reversible Self Sequence Set Sized TYPE_CHECKING Text "
                   "Tuple Type TypeAlias TypeGuard TypeVar TypedDict Union Unpack ValuesView assert_never "
                   "cast")
    | {"final": still(_decorates(typing.final)), "overload": still(lambda thing: thing)},
    "abc": {"ABC": _Abstract, "abstractmethod": still(lambda method: method)},
    "contextlib": some(contextlib, "contextmanager nullcontext suppress"),
    "copy": {"copy": still(_copied), "deepcopy": still(lambda thing: copy.deepcopy(thing))},
    "fractions": {"Fraction": fractions.Fraction},
    "operator": some(operator, set(operator.__all__) - {"call"})
    | {"attrgetter": still(_attrgetter), "methodcaller": still(_methodcaller)},
    "warnings": dict.fromkeys(("filterwarnings", "simplefilter", "warn"), still(lambda *_, **__: None))
    | {"catch_warnings": still(lambda: _Quiet())},
    "collections.abc": some(collections.abc, collections.abc.__all__),
    "collections": some(collections, "ChainMap Counter OrderedDict UserDict UserList UserString defaultdict deque "
                        "namedtuple"),
    "functools": some(functools, "cache cached_property cmp_to_key lru_cache partial reduce")
    | {"total_ordering": still(_decorates(functools.total_ordering)), "wraps": still(_wraps)},
    "bisect": _public(bisect),
    "heapq": _public(heapq),
    "itertools": _public(itertools),
    "statistics": some(statistics, "NormalDist StatisticsError correlation covariance fmean geometric_mean "
                        "harmonic_mean linear_regression mean median median_grouped median_high median_low mode "
                        "multimode pstdev pvariance quantiles stdev variance"),
    "__future__": some(__future__, __future__.all_feature_names),
}  # fmt: skip
"""What players get of each module, beside the random ones and ours."""
PARTS = [name.partition(".")[2] for name in EXPOSED if name.startswith("numpy.") and name.count(".") == 1]
"""The modules in numpy, beside that of random numbers."""
OF_STATES = frozenset(
    words(
        "beta binomial bytes chisquare choice dirichlet exponential f gamma geometric get_state gumbel "
        "hypergeometric laplace logistic lognormal logseries multinomial multivariate_normal negative_binomial "
        "noncentral_chisquare noncentral_f normal pareto permutation poisson power rand randint randn random "
        "random_integers random_sample rayleigh set_state shuffle standard_cauchy standard_exponential "
        "standard_gamma standard_normal standard_t triangular uniform vonmises wald weibull zipf"
    )
)
CHANCES = sorted({*DRAWS, "binomialvariate", "getstate", "randbytes", "seed", "setstate"})
SEEDED = frozenset(words("default_rng RandomState seed MT19937 PCG64 PCG64DXSM Philox SFC64"))
"""What makes random numbers of a seed."""
RANDOM = {"random": frozenset({*CHANCES, "Random"}),
          "numpy.random": OF_STATES | SEEDED | {"Generator", "BitGenerator"}}  # fmt: skip
"""The names of modules of random numbers."""
_OF_TYPES = {
    name
    for known in (str, list, dict, set, frozenset, tuple, int, float, complex, bytes, range, slice,
                  collections.deque, collections.Counter, collections.OrderedDict, collections.ChainMap,
                  fractions.Fraction)
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
    words("flags writeable c_contiguous f_contiguous strides tobytes"),
    words("args cache_clear cache_info close deleter getter send setter _asdict _fields _replace"),
    words("integers permuted standard_normal"),
    words("Q R S U Vh counts eigenvalues eigenvectors indices intercept inverse_indices logabsdet sign slope"),
    words("c cdf coef coefficients coeffs convert cutdeg degree deriv domain filled fit from_samples fromroots integ "
          "inv_cdf linspace mapparms mask o order overlap pdf r roots truncate window zscore"),
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
    np.ma, np.ma.MaskedArray, np.ma.mean, np.fft, np.char, np.strings, np.polynomial, *_POLYNOMIALS, np.poly1d,
    np.ndenumerate, np.ndindex, np.r_, np.c_, np.mgrid, np.s_, np.random.PCG64, statistics.NormalDist,
    collections.UserDict, collections.UserList, collections.UserString, enum.Flag, typing.TypeVar, typing.Generic,
    interface.SeenHistory, interface.Record, interface.GameDescription, staticmethod, abc.ABCMeta,
)  # fmt: skip
AMBIGUOUS = frozenset(name for thing in _READ_OF for name in dir(thing)) - SAFE
"""Attributes that may mean something else than a player's own."""
