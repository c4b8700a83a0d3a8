#!/bin/bash
# What the pages for users show is true: docs.sh [PAGE.md…] runs all pages, or these, in three modes.
# The function reference and the site are made first; pages of the reference are run like the others.
set -u
cd "$(dirname "$0")/../.." || exit 1
reference=build/docs/reference
said() { tr '\n' ' ' <"$1" | cut -c 1-300; }
log=build/check/docs.out
mkdir -p build/check

rm -rf $reference build/site
if ! /sbin/ldconfig -p | grep -q libpcre2-8.so.0; then
  echo "skip docs/site: it needs PCRE2 (libpcre2-8.so.0)"
  exit
fi
if make -s docs >$log 2>&1; then echo "ok docs/site"; else echo "not ok docs/site: $(said $log)"; fi

# A browser opens the site as files: somebody searches, opens the menu, and chooses the other theme.
if [ -d build/site ]; then
  if browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome); then
    sed 's|</body>|<script>addEventListener("load", () => {\
      const field = document.getElementById("search")\
      field.value = "group by"\
      field.dispatchEvent(new Event("input"))\
      document.getElementById("menu").click()\
      document.getElementById("theme").click()\
    })</script></body>|' build/site/guide/start.html >build/site/guide/tried.html
    profile=$(mktemp -d)
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$profile" --virtual-time-budget=5000 \
      --dump-dom "file://$PWD/build/site/guide/tried.html" >build/check/docs.dom 2>/dev/null
    rm -rf "$profile" build/site/guide/tried.html
    lacks=
    for wanted in 'href="../guide/cookbook-tables.html#group-by"' 'class="pages open"' 'data-theme="'; do
      grep -qF "$wanted" build/check/docs.dom || lacks="$lacks $wanted"
    done
    if [ -z "$lacks" ]; then echo "ok docs/browser"; else echo "not ok docs/browser: the page lacks$lacks"; fi
  else echo "skip docs/browser: there is no Chromium"; fi
fi

# A page of the guide shows what its code draws.
if [ -d build/site ]; then
  lacks=
  for name in $(grep -ho 'src="[^"]*\.\(svg\|png\)"' build/site/guide/*.html | cut -d '"' -f 2); do
    [ -s "build/site/guide/$name" ] || lacks="$lacks $name"
  done
  grep -q 'src="waves.svg"' build/site/guide/cookbook-plots.html || lacks="$lacks waves.svg"
  if [ -z "$lacks" ]; then echo "ok docs/drawings"; else echo "not ok docs/drawings: the site lacks$lacks"; fi
fi

# Every link of the site leads to a file, and to an anchor in it.
if [ -d build/site ]; then
  (cd build/site && find . -name '*.html' | sed 's|^\./||' | LC_ALL=C sort | xargs awk '
    FNR == 1 { files[FILENAME] = 1 }
    {
      rest = $0
      while (match(rest, / id="[^"]*"/)) {
        ids[FILENAME "#" substr(rest, RSTART + 5, RLENGTH - 6)] = 1
        rest = substr(rest, RSTART + RLENGTH)
      }
      rest = $0
      while (match(rest, / (href|src)="[^"]*"/)) {
        link = substr(rest, RSTART, RLENGTH); sub(/^[^"]*"/, "", link); sub(/"$/, "", link)
        rest = substr(rest, RSTART + RLENGTH)
        if (link ~ /^(https?|mailto):/) continue
        folder = FILENAME; if (!sub("/[^/]*$", "", folder)) folder = ""
        page = link; sub(/#.*/, "", page)
        anchor = link; if (!sub(/^[^#]*#/, "", anchor)) anchor = ""
        if (page == "") page = FILENAME
        else {
          while (sub(/^\.\.\//, "", page)) if (!sub("/[^/]*$", "", folder)) folder = ""
          if (folder != "") page = folder "/" page
        }
        if (page ~ /\.html$/) wanted[page (anchor == "" ? "" : "#" anchor)] = FILENAME
      }
    }
    END {
      for (w in wanted) {
        page = w; sub(/#.*/, "", page)
        if (!(page in files) || (w ~ /#/ && !(w in ids))) { print "a link of " wanted[w] " leads nowhere: " w; bad = 1 }
      }
      exit bad
    }') >$log 2>&1 && echo "ok docs/links" || echo "not ok docs/links: $(said $log)"
fi

if [ $# -eq 0 ]; then 
  rm -f $reference/index.md # names alone
  set -- README.md docs/language.md docs/tiers.md docs/guide/*.md $reference/*.md
fi
build/tests/docs "$@"
build/tests/docs --backend eager "$@"
build/tests/docs --hot 1 "$@"

python=python3
[ -x build/peers/bin/python ] && python=build/peers/bin/python
if command -v "$python" >/dev/null; then "$python" tests/tools/docs_peers.py
else echo "skip docs/peers: there is no Python"; fi
