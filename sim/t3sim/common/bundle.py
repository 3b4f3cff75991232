"""A bundle of records and arrays that compiled code takes as one pointer.

Numba passes a tuple of arrays by value, some hundred words and as many reference counts for each call. A
:class:`Bundle` is instead a table of addresses and shapes; an attribute of it is a record, or an array that compiled
code builds from the table where it needs it, as in C. The Python object keeps them alive.
"""

from typing import Any, ClassVar

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import populate_array

MAX_DIMENSIONS = 3
_ROW_WORDS = 1 + MAX_DIMENSIONS
"""A row of the table: address, then the shape."""


class Bundle:
    """Base of bundles: subclasses declare ``FIELDS``, name -> (dtype, dimensions), and get one attribute per field.

    An array without dimensions is a record: ``bundle.link["latency_cycles"]``, in compiled code
    ``bundle.link.latency_cycles``.

    Raises TypeError if an array is missing, unknown, or not a C-contiguous array of its field's type.
    """

    FIELDS: ClassVar[dict[str, tuple[np.dtype, int]]]

    def __init__(self, **arrays: np.ndarray) -> None:
        if arrays.keys() != self.FIELDS.keys():
            raise TypeError(f"{type(self).__name__} has other fields than {sorted(arrays.keys() ^ self.FIELDS.keys())}")
        self._table = np.zeros((len(self.FIELDS), _ROW_WORDS), np.int64)
        self.address = self._table.ctypes.data
        for name, array in arrays.items():
            self.bind(name, array)

    def bind(self, name: str, array: np.ndarray) -> None:
        """Let field ``name`` be ``array`` (shared, not copied)."""
        dtype, dimensions = self.FIELDS[name]
        if array.dtype != dtype or array.ndim != dimensions or not array.flags.c_contiguous:
            raise TypeError(f"field {name} is {dimensions}-dimensional and C-contiguous, of {dtype}")
        row = self._table[list(self.FIELDS).index(name)]
        row[0] = array.ctypes.data
        row[1 : 1 + dimensions] = array.shape
        setattr(self, name, array if dimensions else array[()])

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no array {name!r}")


class BundleType(types.Type):
    """Numba type of a class of bundles."""

    def __init__(self, bundle: type[Bundle]) -> None:
        self.bundle = bundle
        super().__init__(name=f"{bundle.__module__}.{bundle.__qualname__}")

    def field_type(self, name: str) -> types.Type | None:
        """The type of a field, a record or an array; None if there is no such field."""
        if name not in self.bundle.FIELDS:
            return None
        dtype, dimensions = self.bundle.FIELDS[name]
        return types.Array(from_dtype(dtype), dimensions, "C") if dimensions else from_dtype(dtype)


@typeof_impl.register(Bundle)
def _typeof(value: Bundle, context: object) -> BundleType:
    return BundleType(type(value))


@register_model(BundleType)
class _BundleModel(models.PrimitiveModel):
    def __init__(self, manager, fe_type):
        super().__init__(manager, fe_type, ir.IntType(64))


@unbox(BundleType)
def _unbox(typ, value, c):
    address = c.pyapi.object_getattr_string(value, "address")
    native = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(native, is_error=c.pyapi.c_api_error())


@infer_getattr
class _BundleAttributes(AttributeTemplate):
    key = BundleType

    def generic_resolve(self, typ, attr):
        return typ.field_type(attr)


@lower_getattr_generic(BundleType)
def _get_field(context, builder, typ, value, attr):
    field = typ.field_type(attr)
    word = ir.IntType(64)
    table = builder.inttoptr(value, word.as_pointer())
    first = list(typ.bundle.FIELDS).index(attr) * _ROW_WORDS

    # The table does not change while compiled code runs, so a load may be kept across any store.
    invariant = builder.module.add_metadata([])

    def load(i):
        loaded = builder.load(builder.gep(table, [ir.Constant(word, first + i)]))
        loaded.set_metadata("invariant.load", invariant)
        return loaded

    if isinstance(field, types.Record):
        return builder.inttoptr(load(0), context.get_value_type(field))
    shape = [load(1 + i) for i in range(field.ndim)]
    itemsize = ir.Constant(word, context.get_abi_sizeof(context.get_data_type(field.dtype)))
    strides = [itemsize]
    for extent in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], extent))
    array = context.make_array(field)(context, builder)
    data = builder.inttoptr(load(0), array.data.type)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue()
