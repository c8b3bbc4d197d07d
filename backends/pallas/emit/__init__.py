"""From a program to one readable Python file."""
