"""`python -m schedc`: the command."""

from schedc.cli.main import main

main()
