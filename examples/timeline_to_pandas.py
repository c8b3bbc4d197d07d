"""A simulated step as a pandas table: which phases does the core wait in, and which transfers does it wait for?

pip install pandas
python examples/timeline_to_pandas.py smollm2-135m
"""

import sys
from dataclasses import asdict

import pandas as pd

import schedc


def main(model: str) -> None:
    timeline = schedc.predict(model).timeline()
    events = pd.DataFrame([asdict(event) for event in timeline.events])
    events["us"] = (events.ended_ns - events.began_ns) / 1e3
    print(f"{model}: a step of {timeline.step_ns / 1e3:,.1f} µs, {len(events):,} events")
    waits = events[events.lane == "stall"].groupby(["phase", "name"]).us.agg(["count", "sum"])
    print(waits.sort_values("sum", ascending=False).head(8).round(2).to_string())
    moved = events[events.lane == "hbm"].groupby("name").agg(transfers=("us", "size"), MiB=("bytes", "sum"))
    moved["MiB"] /= 2**20
    print(moved.sort_values("MiB", ascending=False).head(8).round(2).to_string())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "smollm2-135m")
