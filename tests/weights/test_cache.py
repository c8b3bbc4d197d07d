"""Keys and values as the words of the kernel's cache, and back."""

from dataclasses import replace

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn

from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.mla import Mla
from schedc.spec.norm import Norm
from schedc.weights.cache import CacheLayout, cache_layout, cache_words, empty_cache, read_sequence, write_sequence


def keys_and_values(tokens: int, kv_heads: int, head_dim: int) -> tuple[np.ndarray, np.ndarray]:
    values = np.random.default_rng(0).standard_normal((2, tokens, kv_heads, head_dim)).astype(np.float32)
    return values[0], values[1]


def layout_of(layers: int, rows: int, capacity: int, kv_heads: int, head_dim: int, dtype: str) -> CacheLayout:
    mixer = Gqa(kind="gqa", heads=kv_heads, kv_heads=kv_heads, head_dim=head_dim)
    return cache_layout(mixer, layers, rows, capacity, dtype)


def bf16_halves(word: int) -> list[float]:
    return np.array([word], np.int32).view(bfloat16).astype(np.float32).tolist()


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    kinds = {"f32": np.float32, "bf16": bfloat16, "fp8": float8_e4m3fn}
    return values.astype(kinds[dtype]).astype(np.float32)


def test_a_small_head_is_one_panel_of_k_and_v() -> None:
    k, v = keys_and_values(20, 3, 48)
    layout = layout_of(layers=1, rows=1, capacity=32, kv_heads=3, head_dim=48, dtype="bf16")
    words = cache_words(layout, (k, v)).reshape(2, 3, 8, 128)  # [chunk][panel][word row][lane]
    assert bf16_halves(words[0, 2, 3, 5]) == rounded(k[6:8, 2, 5], "bf16").tolist()
    assert bf16_halves(words[1, 1, 1, 64 + 5]) == rounded(v[18:20, 1, 5], "bf16").tolist()
    assert not words[:, :, :, 48:64].any()
    assert not words[1, :, 2:].any()


def test_a_large_head_is_its_panels_of_k_then_of_v() -> None:
    k, v = keys_and_values(8, 2, 192)
    layout = layout_of(layers=1, rows=1, capacity=8, kv_heads=2, head_dim=192, dtype="f32")
    words = cache_words(layout, (k, v)).view(np.float32).reshape(1, 8, 8, 128)
    assert words[0, 1, 3, 5] == k[3, 0, 128 + 5]
    assert words[0, 4 + 2, 3, 5] == v[3, 1, 5]
    assert not words[0, 1, :, 64:].any()


@pytest.mark.parametrize("dtype", ["bf16", "f32", "fp8"])
@pytest.mark.parametrize("head_dim", [8, 64, 80, 128, 256])
@pytest.mark.parametrize("tokens", [1, 16, 23])
def test_a_sequence_is_read_back_as_rounded_and_touches_no_other(dtype: str, head_dim: int, tokens: int) -> None:
    layout = layout_of(layers=2, rows=3, capacity=40, kv_heads=2, head_dim=head_dim, dtype=dtype)
    k, v = keys_and_values(tokens, 2, head_dim)
    cache = empty_cache(layout)
    write_sequence(cache, layout, layer=1, row=2, kept=(k, v))
    read = read_sequence(cache, layout, layer=1, row=2, tokens=tokens)
    np.testing.assert_array_equal(read, (rounded(k, dtype), rounded(v, dtype)))
    first = layout.first_row(1, 2)
    assert first == 5 * layout.sequence_rows
    assert not cache[:first].any()
    assert len(cache) == 6 * layout.sequence_rows


@pytest.mark.parametrize("tokens", [5, 32, 39, 71])
def test_a_ring_keeps_the_last_tokens_of_a_sequence(tokens: int) -> None:
    """Of 32 tokens: a token lies where that 32 later will."""
    whole = layout_of(layers=2, rows=2, capacity=80, kv_heads=2, head_dim=80, dtype="bf16")
    layout = replace(whole, ring_tokens=32)
    assert layout.word_rows * 80 == whole.word_rows * 32
    k, v = keys_and_values(tokens, 2, 80)
    cache = empty_cache(layout)
    write_sequence(cache, layout, layer=1, row=0, kept=(k, v))
    read = read_sequence(cache, layout, layer=1, row=0, tokens=tokens)
    kept = slice(max(0, -(-tokens // 16) * 16 - 32), tokens)  # Whole chunks of 16.
    for found, given in zip(read, (k, v), strict=True):
        np.testing.assert_array_equal(found[kept], rounded(given[kept], "bf16"))
    others = np.delete(cache, np.arange(2 * layout.sequence_rows, 3 * layout.sequence_rows), axis=0)
    assert not others.any()


def test_latents_and_shared_keys_lie_in_panels_of_their_own() -> None:
    norm = Norm(kind="rms", eps=1e-6)
    mixer = Mla(kind="mla", heads=4, kv_rank=130, nope_dim=8, rope_dim=6, value_dim=8, kv_norm=norm)
    layout = cache_layout(mixer, 1, 1, 16, "bf16")
    latent, key = (np.random.default_rng(0).standard_normal((16, 1, width), np.float32) for width in (130, 6))
    words = cache_words(layout, (latent, key)).reshape(1, 3, 8, 128)
    assert bf16_halves(words[0, 1, 3, 1]) == rounded(latent[6:8, 0, 129], "bf16").tolist()
    assert bf16_halves(words[0, 2, 3, 5]) == rounded(key[6:8, 0, 5], "bf16").tolist()
    assert not words[0, 1, :, 2:].any()


def test_a_page_holds_some_tokens_of_a_sequence_in_every_layer() -> None:
    k, v = keys_and_values(20, 2, 64)
    plain = layout_of(layers=2, rows=2, capacity=24, kv_heads=2, head_dim=64, dtype="f32")
    layout = replace(plain, page_tokens=8, pages=7)
    table = np.array([[0, 1, 2], [6, 3, 5]])
    cache = empty_cache(layout)
    write_sequence(cache, layout, layer=1, row=1, kept=(k, v), table=table)
    pages = cache.view(np.float32).reshape(2, 7, 2, 8, 128)  # [layer][page][panel][token][lane]
    assert pages[1, 6, 1, 3, 5] == k[3, 1, 5]
    assert pages[1, 3, 0, 2, 64 + 9] == v[10, 0, 9]
    assert not pages[0].any()
    assert not pages[1, [0, 1, 2, 4]].any()
    np.testing.assert_array_equal(read_sequence(cache, layout, 1, 1, 20, table), (k, v))


def test_what_fp8_cannot_hold_becomes_its_largest_number() -> None:
    layout = layout_of(layers=1, rows=1, capacity=32, kv_heads=1, head_dim=64, dtype="fp8")
    k, v = np.full((2, 1, 1, 64), 1e6, np.float32)
    words = cache_words(layout, (k, -v))
    cache = empty_cache(layout)
    cache[: len(words)] = words
    read = read_sequence(cache, layout, 0, 0, 1)
    assert [set(side.reshape(-1)) for side in read] == [{448.0}, {-448.0}]


def test_keys_of_another_shape_are_refused() -> None:
    layout = layout_of(layers=1, rows=1, capacity=8, kv_heads=2, head_dim=64, dtype="f32")
    with pytest.raises(ValueError, match=r"k \(9, 2, 64\), v \(9, 2, 64\) do not fit"):
        cache_words(layout, keys_and_values(9, 2, 64))
