"""Correct programs of different make, in the text form: what the proof must accept and mutations must break."""

DOUBLE_BUFFER = """
program double_buffer {
  pool work rows=24
  buffer tile in work rows=8 slots=2 align=8 at 0
  buffer sum in work rows=8 slots=1 align=8 at 16
  hbm weights rows=80 weight
  hbm out rows=8 output
  semaphore arrived[2] dma
  semaphore stored[1] dma
  compute zero(out: write sum[0 +: 8])
  start weights[0 +: 8] -> tile[0 +: 8] signals arrived
  loop l < 10 {
    when l + 1 < 10 {
      start weights[(l + 1) * 8 +: 8] -> tile<(l + 1) % 2>[0 +: 8] signals arrived[(l + 1) % 2]
    }
    wait arrived[l % 2] rows=8
    compute accumulate(x: read tile<l % 2>[0 +: 8], out: update sum[0 +: 8])
  }
  start sum[0 +: 8] -> out[0 +: 8] signals stored
  wait stored rows=8
}
"""

RING = """
program ring {
  attribute policy = "ring"
  pool ring rows=64
  pool work rows=16
  buffer ring.slot in ring rows=16 slots=4 align=8 at 0
  buffer x in work rows=8 slots=1 align=8 at 0
  buffer y in work rows=8 slots=1 align=8 at 8
  hbm w rows=576 weight
  hbm out rows=8 output
  semaphore arrived[4] dma
  semaphore stored[1] dma
  compute zero(out: write x[0 +: 8])
  loop p < 3 unroll {
    start w[p * 16 +: 16] -> ring.slot<p>[0 +: 16] signals arrived[p]
  }
  loop l < LAYERS {
    loop j < 3 {
      when l * 3 + j + 3 < LAYERS * 3 {
        start w[(l * 3 + j + 3) * 16 +: 16] -> ring.slot<(l * 3 + j + 3) % 4>[0 +: 16]
          signals arrived[(l * 3 + j + 3) % 4]
      }
      wait arrived[(l * 3 + j) % 4] rows=16
      compute matmul(x: read x[0 +: 8], w: read ring.slot<(l * 3 + j) % 4>[0 +: 16], out: write y[0 +: 8])
      compute copy(x: read y[0 +: 8], out: write x[0 +: 8])
    }
  }
  start x[0 +: 8] -> out[0 +: 8] signals stored
  wait stored rows=8
}
"""

KV = """
program kv {
  pool work rows=112
  buffer tile in work rows=16 slots=4 align=8 at 0
  buffer chunk in work rows=8 slots=2 align=8 at 64
  buffer acc in work rows=8 slots=2 align=8 at 80
  buffer head in work rows=8 slots=2 align=8 at 96
  hbm kv rows=LAYERS*2*128 state
  hbm out rows=16 output
  smem pos[2] in 0..127 input
  smem active[2] in 0..1 input
  smem full[2] in 0..7 local
  semaphore arrived[4] dma
  semaphore chunk_in[2] dma
  semaphore chunk_out[2] dma
  semaphore stored[2] dma
  compute zero(out: write tile[0 +: 16])
  loop r < 2 unroll {
    set full[r] = active[r] * (pos[r] // 16)
    compute zero(out: write acc<r>[0 +: 8])
    compute zero(out: write head<r>[0 +: 8])
  }
  loop l < LAYERS {
    loop r < 2 unroll {
      when active[r] == 1 {
        start kv[(l * 2 + r) * 128 + pos[r] // 8 * 8 +: 8] -> chunk<r>[0 +: 8] signals chunk_in[r]
        wait chunk_in[r] rows=8
        compute insert(new: read head<r>[0 +: 8], chunk: update chunk<r>[0 +: 8]) scalars(at=pos[r] % 8)
        start chunk<r>[0 +: 8] -> kv[(l * 2 + r) * 128 + pos[r] // 8 * 8 +: 8] signals chunk_out[r]
      }
      when 0 < full[r] {
        start kv[(l * 2 + r) * 128 +: 16] -> tile<r * 2>[0 +: 16] signals arrived[r * 2]
      }
    }
    loop t < max(full[0], full[1]) {
      loop r < 2 unroll {
        when t + 1 < full[r] {
          start kv[(l * 2 + r) * 128 + (t + 1) * 16 +: 16] -> tile<r * 2 + (t + 1) % 2>[0 +: 16]
            signals arrived[r * 2 + (t + 1) % 2]
        }
      }
      loop r < 2 unroll {
        when t < full[r] {
          wait arrived[r * 2 + t % 2] rows=16
          compute attend(kv: read tile<r * 2 + t % 2>[0 +: 16], acc: update acc<r>[0 +: 8])
        }
      }
    }
    loop r < 2 unroll {
      when active[r] == 1 {
        wait chunk_out[r] rows=8
      }
      compute finish(acc: read acc<r>[0 +: 8], out: write head<r>[0 +: 8])
    }
  }
  loop r < 2 unroll {
    start head<r>[0 +: 8] -> out[r * 8 +: 8] signals stored[r]
  }
  loop r < 2 unroll {
    wait stored[r] rows=8
  }
}
"""

MERGE = """
# The newest position is merged into the last tile inside the loop, whose trip count is at least one if active.
program merge {
  pool work rows=112
  buffer tile in work rows=16 slots=4 align=8 at 0
  buffer chunk in work rows=8 slots=2 align=8 at 64
  buffer acc in work rows=8 slots=2 align=8 at 80
  buffer new in work rows=8 slots=2 align=8 at 96
  hbm kv rows=768 state
  smem pos[2] in 0..127 input
  smem active[2] in 0..1 input
  smem tiles[2] in 0..8 local
  semaphore arrived[4] dma
  semaphore stored[2] dma
  loop r < 2 {
    set tiles[r] = active[r] * (pos[r] // 16 + 1)
    compute zero(out: write new<r>[0 +: 8])
    compute zero(out: write chunk<r>[0 +: 8])
  }
  loop l < 3 {
    loop r < 2 {
      compute zero(out: write acc<r>[0 +: 8])
      when 0 < tiles[r] {
        start kv[(l * 2 + r) * 128 +: 16] -> tile<r * 2>[0 +: 16] signals arrived[r * 2]
      }
    }
    loop t < max(tiles[0], tiles[1]) {
      loop r < 2 {
        when t + 1 < tiles[r] {
          start kv[(l * 2 + r) * 128 + t * 16 + 16 +: 16] -> tile<r * 2 + (t + 1) % 2>[0 +: 16]
            signals arrived[r * 2 + (t + 1) % 2]
        }
      }
      loop r < 2 {
        when t < tiles[r] {
          wait arrived[r * 2 + t % 2] rows=16
          when t == pos[r] // 16 {
            compute insert(new: read new<r>[0 +: 8], tile: update tile<r * 2 + t % 2>[0 +: 16]) scalars(at=pos[r] % 16)
            compute cut(tile: read tile<r * 2 + t % 2>[0 +: 16], out: write chunk<r>[0 +: 8]) scalars(at=pos[r] % 16)
          }
          compute attend(kv: read tile<r * 2 + t % 2>[0 +: 16], acc: update acc<r>[0 +: 8])
        }
      }
    }
    loop r < 2 {
      when active[r] != 0 {
        start chunk<r>[0 +: 8] -> kv[(l * 2 + r) * 128 + pos[r] // 8 * 8 +: 8] signals stored[r]
      }
      compute finish(acc: read acc<r>[0 +: 8], out: write new<r>[0 +: 8])
    }
    loop r < 2 {
      when active[r] >= 1 {
        wait stored[r] rows=8
      }
    }
  }
}
"""


def ring(layers: int = 12) -> str:
    return RING.replace("LAYERS * 3", str(layers * 3)).replace("LAYERS", str(layers)).replace("576", str(layers * 48))


def kv(layers: int = 3) -> str:
    return KV.replace("LAYERS*2*128", str(layers * 256)).replace("LAYERS", str(layers))


SAMPLES = {"double_buffer": DOUBLE_BUFFER, "ring": ring(), "kv": kv(), "merge": MERGE}
