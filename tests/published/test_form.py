"""A published schedule is data: what is wrong with it is said at its place, all at once."""

import re
from pathlib import Path

import pytest

from schedc.errors import SpecError, UserError
from schedc.published import read
from schedc.published.read import list_published, load_published, parse_published

TEXT = (Path(read.__file__).with_name("schedules") / "kimi-k3.yaml").read_text()

FAULTS = [
    ("mib: 22.75, region: overlay", "mib: -1, region: overlay", "tensors.kda_wide.mib: "),
    ("mib: 22.75, region: overlay", "mib: 22.75, region: pool", "tensors.kda_wide.region: no region 'pool'"),
    ("mib: 22.75, region: overlay", "mib: 30, region: overlay", "tensors.kda_wide: ends at 30 MiB of region overlay"),
    ("needs: [kda_wide]", "needs: [kda_wode]", "parts.mix_kda[1].needs: no such need: 'kda_wode'"),
    ("sends: [latents]", "sends: [letters]", "parts.moe[5].sends: no such send: 'letters'"),
    ("pattern: [dense]", "pattern: [sparse]", "layers[0].pattern: no kind 'sparse'"),
    ("kda: [mix_kda, moe]", "kda: [mix, moe]", "kinds.kda: no part 'mix'"),
    ("groups: 8", "groups: 9", "experts.groups: 896 experts are not 9 equal groups"),
    ("at_once: 2", "at_once: 5", "experts.at_once: 5 at once do not fit 4 slots"),
    ("stride: 8, devices: 4", "stride: 8, devices: 8", "exchanges.hosts.devices: reaches beyond the 32 devices"),
    ("stride: 8, devices: 4", "stride: 8, devices: 3", "exchanges.hosts.devices: stride and devices must be powers of"),
    ("tokens: 128\n", "tokens: 128\n    tiles: 3\n", "streams.mla_cache.tiles: a stream has either tiles, or tokens"),
    (', source: "published: persistent"', "", "regions.router.source: "),
    ("do: members", "do: experts", "parts.moe[8]"),
    ("name: kimi-k3\n", "name: kimi-k3\nmodels: k3\n", "models: unknown key"),
]


@pytest.mark.parametrize(("good", "bad", "said"), FAULTS, ids=[said for _, _, said in FAULTS])
def test_a_fault_is_refused_at_its_key(good: str, bad: str, said: str) -> None:
    assert good in TEXT
    with pytest.raises(SpecError, match=re.escape(said)):
        parse_published(TEXT.replace(good, bad, 1), "mine.yaml")


def test_all_faults_are_said_at_once() -> None:
    text = TEXT.replace("sends: [scores]", "sends: [letters]").replace("pattern: [dense]", "pattern: [sparse]")
    with pytest.raises(SpecError) as caught:
        parse_published(text, "mine.yaml")
    assert len(caught.value.problems) == 2


def test_a_schedule_is_found_by_name_or_by_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(TEXT)
    assert load_published("kimi-k3") == load_published(str(tmp_path / "mine.yaml"))
    assert list_published() == ["kimi-k3"]
    with pytest.raises(UserError, match="no published schedule 'kimi'; there are: kimi-k3"):
        load_published("kimi")
