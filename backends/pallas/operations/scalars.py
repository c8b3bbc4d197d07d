"""From vectors to scalars: what the core branches and addresses by."""


def vector_to_scalars(x, values, count):
    """The first `count` words of the first row, as integers: values i32[>= count] in SMEM."""
    words = x[0:1, :]
    for i in range(count):
        values[i] = words[0, i]
