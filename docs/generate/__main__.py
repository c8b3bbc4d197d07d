"""Make the pages of the documentation that come from the code.

python -m docs.generate              all of them
python -m docs.generate --check      say which ones are out of date, and leave with 1 if any is
python -m docs.generate --models     the pages of the shipped models too, with their pictures (minutes)
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from docs.generate import api_reference, commands, ir_reference, spec_reference

DOCS = Path(__file__).parents[1]
PAGES = {
    "reference/ir.md": ir_reference.page,
    "reference/commands.md": commands.page,
    "reference/spec.md": spec_reference.page,
    "reference/python.md": api_reference.page,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--models", action="store_true")
    arguments = parser.parse_args()
    stale = []
    for name, make in PAGES.items():
        path, text = DOCS / name, make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not arguments.check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if arguments.check:
        for name in stale:
            print(f"docs/{name} is out of date: python -m docs.generate", file=sys.stderr)
        return 1 if stale else 0
    print(f"wrote {', '.join(stale) or 'nothing: all pages are up to date'}")
    if arguments.models:
        from docs.generate.models import write_pages

        write_pages(DOCS)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
