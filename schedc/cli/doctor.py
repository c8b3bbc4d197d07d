"""`schedc doctor`: what is here, what is missing, and whether the TPU compiler works on this machine."""

from typing import Annotated

import typer

from schedc.cli.console import Json, Stages, print_json, simple_table, to_stdout
from schedc.errors import CheckFailed


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds the TPU compiler may take.", min=1)] = 120,
    json: Json = False,
) -> None:
    """Look at this machine: versions, what is missing, whether the TPU compiler works here.

    Leaves with 1 if something is missing that schedc needs; extras are only named.

    Example:

      schedc doctor
    """
    from rich.text import Text

    from schedc.compiler.doctor import examine

    with Stages().stage("TPU compiler") as say:
        findings = list(examine(timeout, say))
    wrong = [finding for finding in findings if finding.needed and finding.state != "ok"]
    if json and not wrong:
        print_json({"findings": [finding.to_dict() for finding in findings]})
    if not json:
        table = simple_table("what", "", "", "what would help")
        colours = {"ok": "green", "missing": "yellow", "broken": "red"}
        for finding in findings:
            state = Text(finding.state, style=colours[finding.state])
            table.add_row(finding.name, state, finding.said, finding.repair)
        to_stdout().print(table)
    if wrong:
        problems = [f"{finding.name}: {finding.said}; {finding.repair}" for finding in wrong]
        message = "\n".join(["schedc cannot work here:", *(f"  {problem}" for problem in problems)])
        details = {"findings": [finding.to_dict() for finding in findings]}
        raise CheckFailed(message, problems=problems, details=details)
