"""Looking inside a compiled program: tables, margins, differences, explanations."""
