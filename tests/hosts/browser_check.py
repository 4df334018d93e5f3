"""Opens pages and pictures in a headless browser and measures them: browser_check.py BROWSER FILE...

Each file is shown in frames of 1200 and 400 pixels, of which a script beside it asks where everything stands. Screenshots in
light and dark lie beside the files.
"""
import html
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

WIDTHS = 1200, 400

# What is wrong in a frame, as texts: what sticks out of the window, labels upon each other, labels outside of their picture.
MEASURE = """
function faults(frame) {
  const page = frame.contentDocument, root = page.documentElement, found = [];
  if (root.scrollWidth > root.clientWidth) found.push(`${root.scrollWidth} wide in ${root.clientWidth}`);
  const text = one => one.textContent.trim().slice(0, 40);
  for (const picture of page.querySelectorAll("svg")) {
    const edge = picture.getBoundingClientRect(), labels = [...picture.querySelectorAll("text")];
    const boxes = labels.map(one => one.getBoundingClientRect());
    boxes.forEach((a, i) => {
      if (a.width === 0) found.push(`no room: ${text(labels[i])}`);
      if (a.left < edge.left - 0.5 || a.right > edge.right + 0.5 || a.top < edge.top - 0.5 || a.bottom > edge.bottom + 0.5)
        found.push(`cut: ${text(labels[i])}`);
      boxes.slice(0, i).forEach((b, k) => {
        if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
          found.push(`${text(labels[i])} on ${text(labels[k])}`);
      });
    });
  }
  for (const one of page.querySelectorAll("h1, h2, h3, p, li, figcaption, dl, dt, dd, summary"))
    if (one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0) found.push(`too wide: ${text(one)}`);
  // those of usual names need no scrolling; with names without measure they may
  for (const one of page.querySelectorAll(".wide"))
    if (one.scrollWidth > one.clientWidth && !page.title.includes("long")) found.push(`scrolls: ${text(one)}`);
  const cells = [...page.querySelectorAll("th, td, dt, dd")].map(one => [one, one.getBoundingClientRect()]);
  for (const [one, a] of cells)
    if (one.nextElementSibling && a.right > one.nextElementSibling.getBoundingClientRect().left + 0.5 && a.width > 0)
      found.push(`${text(one)} reaches over ${text(one.nextElementSibling)}`);
  return found;
}
addEventListener("load", () => {
  const said = [...document.querySelectorAll("iframe")].map(frame => [frame.id, faults(frame),
    frame.contentDocument.querySelectorAll("svg text, dd, td").length]);
  document.getElementById("said").textContent = JSON.stringify(said);
});
"""


def run(browser, *arguments):
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=600, check=True).stdout


def faults(browser, text):
    frames = "".join(
        f'<iframe id="{width}" width="{width}" height="800" style="border:0" srcdoc="{html.escape(text)}"></iframe>'
        for width in WIDTHS)
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as page:
        page.write(f'<!DOCTYPE html><meta charset="utf-8"><script>{MEASURE}</script><pre id="said"></pre>{frames}')
        page.flush()
        shown = run(browser, "--dump-dom", pathlib.Path(page.name).as_uri())
    said = json.loads(html.unescape(re.search(r'<pre id="said">(.*?)</pre>', shown, re.S).group(1)))
    assert [int(width) for width, _, _ in said] == list(WIDTHS), said
    assert all(count > 10 for _, _, count in said), f"almost nothing was measured: {said}"
    return [f"at {width} pixels: {fault}" for width, found, _ in said for fault in found]


def screenshot(browser, path, width, height, dark):
    picture = path.with_suffix(f".{'dark' if dark else 'light'}.png")
    run(browser, f"--window-size={width},{height}", f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        f"--screenshot={picture}", path.absolute().as_uri())
    head = picture.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n", f"{picture} is no picture"
    assert struct.unpack(">II", head[16:24]) == (width, height), f"{picture} has another size"
    return picture.stat().st_size


def main():
    browser, failed = sys.argv[1], 0
    # What measures must find faults where there are some.
    broken = '<!DOCTYPE html><div style="width:1300px">wide</div><svg width="100" height="40"><text x="1" y="20">on</text>' \
        '<text x="3" y="22">each other</text><text x="90" y="39">outside of it</text></svg><dl>' + "<dd>x</dd>" * 20
    found = " ".join(faults(browser, broken))
    for word in "wide in", "each other on on", "cut: outside":
        assert word in found, f"not found: {word}: {found}"
    for path in map(pathlib.Path, sys.argv[2:]):
        text = path.read_text(encoding="utf-8")
        around = '<!DOCTYPE html><body style="margin:0"><div style="overflow-x:auto">'
        page = text if path.suffix == ".html" else f"{around}{text}</div>"
        for fault in faults(browser, page):
            print(f"FAILED: {path} {fault}")
            failed = 1
        height = 7200 if path.suffix == ".html" else 700
        sizes = [screenshot(browser, path, 1200, height, dark) for dark in (False, True)]
        print(path, "screenshots of", *sizes, "bytes")
        assert min(sizes) > 10000, f"{path}: there is nothing to be seen"
    sys.exit(failed)


main()
