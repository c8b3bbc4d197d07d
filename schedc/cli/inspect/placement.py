"""`schedc inspect placement`: what each device holds."""

from schedc.cli.console import Json, print_json, to_stdout
from schedc.cli.inspect.opened import refuse_other_rows
from schedc.cli.options import ModelOrFolder, Rows, ScheduleOptions, compiled_folder
from schedc.cli.table_options import TableOptions, print_table


def placement(
    model: ModelOrFolder, options: ScheduleOptions, table: TableOptions, rows: Rows = None, json: Json = False
) -> None:
    """Say what each device holds: of every weight family, of the caches, and the bytes against its HBM.

    Nothing is compiled. The rules can be changed with --placement FILE. --json is the whole report; with options of the
    table, or as CSV, there is a row a statement.

    Examples:

      schedc inspect placement llama-3.1-8b --devices 8

      schedc inspect placement out/llama-3.1-8b --json

      schedc inspect placement gpt-oss-120b --devices 8 --sort share --reverse
    """
    from schedc.cli.placement_view import placement_lines, placement_table
    from schedc.compiler.placement import placement_report
    from schedc.compiler.pricing import schedule
    from schedc.inspect.tables.placement import placement as as_table
    from schedc.spec.load import load_spec

    folder = compiled_folder(model, options)
    if folder is not None:
        refuse_other_rows(folder, rows)
        target = folder.target
        arrays = folder.program().arrays
        report = placement_report(folder.spec, folder.shape, target, folder.layouts, arrays)
    else:
        request = options.request(load_spec(model), rows)
        target = request.target
        made = schedule(request.spec, request.shape, target, request.policy, request.settings)
        report = placement_report(request.spec, request.shape, target, made.layouts, made.program.arrays)
    if table.given():
        print_table(as_table(report), table, json)
    elif json:
        print_json(report.to_dict())
    else:
        to_stdout().print(target.describe())
        to_stdout().print(placement_table(report), soft_wrap=True)
        for line in placement_lines(report):
            to_stdout().print(line)
