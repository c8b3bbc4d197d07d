"""The forms of packed arrays, one a file. `FORMS` finds the form of a layout by its name."""

from typing import Any

from schedc.weights.forms import head_matrices, panel_matrix, rope_table, row_table, vectors
from schedc.weights.forms.piece import Form

FORMS: dict[str, Form[Any]] = {
    form.name: form for form in (panel_matrix.FORM, head_matrices.FORM, row_table.FORM, vectors.FORM, rope_table.FORM)
}
