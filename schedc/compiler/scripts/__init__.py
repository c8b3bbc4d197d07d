"""Scripts that reproducers are given: they import nothing of schedc, and are copied as they are."""
