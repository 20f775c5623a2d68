"""Pickles of plain data, read without running anything that is in them."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from graphret.errors import InvalidInput


class _Forbidden(pickle.UnpicklingError):
    """The pickle asks for something that is not plain data."""


class _Dtype:
    """What a pickle says of the type of a numpy scalar, kept and not yet believed."""

    def __init__(self, code: str, *_: object) -> None:
        self.code = code
        self.order = "<"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]

    def scalar(self, data: object) -> Any:
        """Return the Python value of one number."""
        if not isinstance(self.code, str) or self.code[:1] not in ("b", "i", "u", "f") or len(self.code) > 2:
            raise _Forbidden(f"a numpy scalar of type {self.code!r}")
        dtype = np.dtype(f"{'>' if self.order == '>' else '<'}{self.code}")
        if not isinstance(data, bytes) or len(data) != dtype.itemsize:
            raise _Forbidden("a numpy scalar of another size than its type")
        return np.frombuffer(data, dtype)[0].item()


def _scalar(dtype: object, data: object) -> Any:
    if not isinstance(dtype, _Dtype):
        raise _Forbidden("a numpy scalar without a type")
    return dtype.scalar(data)


def _latin1(text: object, encoding: object) -> bytes:
    """How old pickles write bytes: as text that is encoded when it is read."""
    if not isinstance(text, str) or encoding != "latin1":
        raise _Forbidden(f"text in the encoding {encoding!r}")
    return text.encode("latin1")


def _container(kind: type) -> Callable[..., Any]:
    def make(*items: Any) -> Any:
        if len(items) > 1 or (items and not isinstance(items[0], list | tuple | dict | set | frozenset)):
            raise _Forbidden(f"a {kind.__name__} of something else than plain items")
        return kind(*items)

    return make


def _default_dict(*_: object) -> dict[Any, Any]:
    return {}  # what makes its missing items is code, and not wanted


class _Maker:
    """A function as a pickle gets to see it: something to call, and nothing to change."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        return self._make(*arguments)

    def __setstate__(self, state: object) -> NoReturn:
        raise _Forbidden("a change to a function")


#: What stands in for every name that may be asked for. No object of the running program is handed out.
_ADMITTED: dict[tuple[str, str], Callable[..., Any]] = {
    **{
        (module, kind.__name__): _container(kind)
        for module in ("builtins", "__builtin__")
        for kind in (list, tuple, dict, set, frozenset)
    },
    ("collections", "OrderedDict"): _container(dict),
    ("collections", "defaultdict"): _default_dict,
    ("_codecs", "encode"): _latin1,
    ("numpy", "dtype"): _Dtype,
    **{(f"{module}.multiarray", "scalar"): _scalar for module in ("numpy.core", "numpy._core")},
}


class PlainUnpickler(pickle.Unpickler):
    """Reads containers, strings, numbers, bytes, `None` and numpy numbers; anything else is refused by name."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands in for an admitted name, and raise for any other."""
        try:
            return _Maker(_ADMITTED[module, name])
        except KeyError:
            raise _Forbidden(f"{module}.{name}") from None

    def persistent_load(self, pid: object) -> NoReturn:
        """Refuse objects that lie outside of the pickle."""
        raise _Forbidden("an object from outside of the file")


def load_plain(path: Path) -> Any:
    """Read a pickle that holds plain data alone.

    Raises
    ------
    InvalidInput
        If there is no such file, it is no whole pickle, or it asks for anything but plain data: nothing of it has run.
    """
    try:
        with path.open("rb") as file:
            return PlainUnpickler(file).load()
    except FileNotFoundError as error:
        raise InvalidInput(f"{path}: no such file") from error
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror or error}") from error
    except _Forbidden as error:
        raise InvalidInput(f"{path}: asks for {error}, which is not plain data; nothing of it was run") from error
    except (
        *(pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError),
        *(ImportError, OverflowError, MemoryError, RecursionError, struct.error),
    ) as error:
        raise InvalidInput(f"{path}: is no pickle of plain data, or a damaged one ({error})") from error
