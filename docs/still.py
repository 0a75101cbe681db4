"""A still of a run's replay, as the README shows it: `python docs/still.py FOLDER`.

Needs Debian's `chromium` and the extra `test`; FOLDER holds a run's `report.html`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

_STEP = 400


def main(folder: str) -> None:
    """Save the replay of `folder`, forward to step 400, as docs/figures/replay.png."""
    page_path = (Path(folder) / "report.html").resolve(strict=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 1000}, device_scale_factor=1.5)
        page.goto(page_path.as_uri())
        page.locator("#replay [name=scrub]").fill(str(_STEP))
        page.locator("#replay").screenshot(path=Path(__file__).parent / "figures" / "replay.png")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
