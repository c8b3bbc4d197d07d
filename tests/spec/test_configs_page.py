"""docs/configs.md says what becomes of every published config."""

from tests.spec.configs_page import CONFIGS, PAGE, page


def test_the_page_says_what_the_importers_do():
    assert PAGE.read_text() == page(), "write it anew: python tests/spec/configs_page.py"


def test_every_config_has_one_row():
    rows = [line.split(" | ")[0].removeprefix("| ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    names = [path.stem for path in CONFIGS.glob("*.json")]
    assert sorted(name for name in rows if name != "config") == sorted(names)
    assert len(names) == 41
