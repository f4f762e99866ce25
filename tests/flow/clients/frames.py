"""Data frames, as pandas and the DataFrameClient of python3-influxdb write and read them."""
import sys

import pandas
from influxdb import DataFrameClient

client = DataFrameClient("localhost", int(sys.argv[1]), database="frames")
client.create_database("frames")
times = pandas.date_range("2024-01-01", periods=4, freq="1min", tz="UTC")
frame = pandas.DataFrame({"v": [1.5, 2.25, None, 4.0], "n": [1, 2, 3, 4], "on": [True, False, True, False],
                          "s": ["a", "b b", "c,d", "ü"]}, index=times)
client.write_points(frame, "frame", tags={"device": "pi"})
client.write_points(frame[["n"]], "seconds", tags={"device": "pi"}, batch_size=3, time_precision="s")

whole = client.query("SELECT * FROM frame")["frame"]
print(whole.to_string())
print("same index:", whole.index.equals(times))
print("types:", *(f"{name} {kind}" for name, kind in whole.dtypes.items()))
windows = client.query("SELECT mean(v), max(n) FROM frame WHERE time >= '2024-01-01' AND time < '2024-01-01 00:05:00' "
                       "GROUP BY time(2m), device fill(none)")
for (name, tags), rows in windows.items():
    print(name, ",".join("=".join(tag) for tag in tags) + ":",
          ", ".join(f"{row.Index} {row.mean} {row.max}" for row in rows.itertuples()))
print("nothing:", client.query("SELECT v FROM nosuch"))
asked = client.query("SELECT v FROM frame WHERE device = $d", bind_params={"d": "pi"})["frame"]
print("only v:", *asked["v"])
print("measurements:", ", ".join(each["name"] for each in client.get_list_measurements()))
