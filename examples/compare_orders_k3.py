"""Kimi K3 on 32 devices of TPU7x: what do slots of other sizes and rings of other depths do to a step?

    python examples/compare_orders_k3.py

Nothing is proven here, so that it takes seconds; `schedc compile kimi-k3 … --set slot_mib=4` proves the one you choose.
"""

import schedc
from schedc.errors import CheckFailed


def main() -> None:
    print(f"{'slots of MiB':>12} {'depth':>6} {'step µs':>9} {'HBM busy':>9} {'core waits µs':>14}")
    for slot_mib in (2.0, 4.0):
        for depth in (2, 4, 8):
            try:
                settings = {"slot_mib": slot_mib, "depth": depth}
                made = schedc.predict("kimi-k3", "tpu7x:2x2x4", devices=32, context=2048, settings=settings)
            except CheckFailed as error:
                print(f"{slot_mib:>12} {depth:>6} does not fit: {str(error).splitlines()[0]}")
                continue
            report = made.report
            print(
                f"{slot_mib:>12} {depth:>6} {report.step_us:>9,.1f} {report.hbm_busy_fraction:>9.0%} "
                f"{report.stall_us:>14,.1f}"
            )


if __name__ == "__main__":
    main()
