"""Arrow files of a daemon as DataFrames, where pyarrow is installed."""
from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

HAS_ARROW = importlib.util.find_spec("pyarrow") is not None


def of_arrow(data: bytes) -> "pandas.DataFrame":
    """Columns time (UTC), device, sensor, value. The value is of one type where all readings are, a number where all
    are numbers; else each cell is of its own type."""
    import pandas
    import pyarrow.ipc

    table: Any = pyarrow.ipc.open_file(pyarrow.BufferReader(data)).read_all()
    return pandas.DataFrame({
        "time": table.column("time").to_pandas(),
        "device": table.column("device").to_pandas().astype(object),
        "sensor": table.column("sensor").to_pandas().astype(object),
        "value": _values_of(table)})


def _values_of(table: Any) -> Any:
    types = set(table.column("type").unique().to_pylist())
    if types <= {"float"} or types == {"float", "int"}:
        return table.column("value").to_pandas()
    names = ["value_" + kind if kind != "float" else "value" for kind in sorted(types)]
    if len(names) == 1:
        return table.column(names[0]).to_pandas()
    # Bools and ints are among the numbers, too: theirs count.
    values = table.column("value").to_pandas().astype(object)
    for name in names:
        if name != "value":
            exact = table.column(name).to_pandas(integer_object_nulls=True)
            is_there = exact.notna()
            values[is_there] = exact[is_there].astype(object)
    return values
