"""Generate text with a compiled kernel: the prompt by the plain-JAX reference, every new token by the kernel.

    python examples/generate_text.py "The capital of France is" 8

Without a TPU the kernel is interpreted, which takes seconds a token. The command does the same: `schedc run`.
"""

import sys

import schedc


def main(prompt: str = "The capital of France is", tokens: int = 8) -> None:
    made = schedc.compile("smollm2-135m", context=512)
    print(prompt, end="", flush=True)
    for text in made.generate(prompt, tokens):
        print(text, end="", flush=True)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
