"""Write torch's logits again: `python tests/conformance/regenerate.py [family …]`, with the extra `conformance`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.conformance.families import FAMILIES, Family
from tests.conformance.live import logits_of, tensors_of


def main(names: list[str]) -> None:
    known = {family.name: family for family in FAMILIES}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no family {', '.join(unknown)}; known: {', '.join(known)}")
    for name in names or known:
        regenerate(known[name])


def regenerate(family: Family) -> None:
    tensors = tensors_of(family)
    logits = {f"logits_{row}": values for row, values in enumerate(logits_of(family, tensors))}
    entries = {name: (tensor.shape, tensor.centre) for name, tensor in tensors.items()}
    family.expected_file.parent.mkdir(exist_ok=True)
    np.savez_compressed(family.expected_file, tensors=np.array(json.dumps(entries)), **logits)
    print(f"{family.name}: {len(tensors)} tensors, {family.expected_file.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main(sys.argv[1:])
