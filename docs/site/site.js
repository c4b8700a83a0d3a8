// site.js — the theme, the menu of narrow windows, the section that is read, copying of code, and the search.
const by = id => document.getElementById(id)

by("theme").addEventListener("click", () => {
  const page = document.documentElement
  const dark = page.dataset.theme ? page.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches
  page.dataset.theme = dark ? "light" : "dark"
  localStorage.setItem("theme", page.dataset.theme)
})

const list = document.querySelector(".pages")
by("menu").addEventListener("click", () => {
  const open = list.classList.toggle("open")
  by("menu").setAttribute("aria-expanded", open)
})
const current = list.querySelector(".current")
if (current) list.scrollTop = current.offsetTop - list.clientHeight / 2 // scrollIntoView would move the page too

// The section that is read: the last heading above a quarter of the window, at the end of the page the last one.
const sections = [...document.querySelectorAll(".contents a")].map(link => {
  return {link, heading: by(decodeURIComponent(link.hash.slice(1)))}
}).filter(section => section.heading)
const follow = () => {
  const end = innerHeight + scrollY >= document.documentElement.scrollHeight - 2
  const above = sections.filter(section => section.heading.getBoundingClientRect().top < innerHeight / 4)
  const read = end && scrollY > 0 ? sections.at(-1) : above.at(-1)
  for (const section of sections) {
    if (section === read) section.link.setAttribute("aria-current", "true")
    else section.link.removeAttribute("aria-current")
  }
  const box = read?.link.closest(".contents")
  if (box) {
    const at = read.link.offsetTop - box.scrollTop
    if (at < 0 || at > box.clientHeight - 40) box.scrollTop = read.link.offsetTop - box.clientHeight / 2
  }
}
addEventListener("scroll", follow, {passive: true})
follow()

for (const block of document.querySelectorAll("pre")) {
  const button = document.createElement("button")
  button.className = "copy"
  button.textContent = "copy"
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(block.querySelector("code").textContent)
    button.textContent = "copied"
    setTimeout(() => { button.textContent = "copy" }, 1500)
  })
  block.append(button)
}

// The index is loaded when somebody searches: a script, since a page of a file may not fetch.
let loading = null
const load = () => loading ??= new Promise(done => {
  const script = document.createElement("script")
  script.src = root + "search.js"
  script.onload = done
  document.head.append(script)
})

// Every word of the question must be found; a whole title counts most, then a word of it, then the text.
const score = (piece, words) => {
  const title = piece.t.toLowerCase()
  let sum = 0
  for (const word of words) {
    const at = title.indexOf(word)
    if (title === word || title.endsWith("." + word)) sum += 100
    else if (at === 0) sum += 30
    else if (at > 0) sum += 15
    else if (piece.p.toLowerCase().includes(word)) sum += 6
    else if (piece.x.toLowerCase().includes(word)) sum += 3
    else return 0
  }
  return sum
}

const excerpt = (text, word) => {
  const at = text.toLowerCase().indexOf(word)
  const from = Math.max(0, at - 40)
  return (from > 0 ? "… " : "") + text.slice(from, from + 140)
}

// The text with the words of the question marked, into an element.
const marked = (element, text, words) => {
  const lower = text.toLowerCase()
  let at = 0
  while (at < text.length) {
    const found = words.map(word => [lower.indexOf(word, at), word]).filter(hit => hit[0] >= 0)
    if (!found.length) break
    const [from, word] = found.sort((a, b) => a[0] - b[0] || b[1].length - a[1].length)[0]
    const mark = document.createElement("mark")
    mark.textContent = text.slice(from, from + word.length)
    element.append(text.slice(at, from), mark)
    at = from + word.length
  }
  element.append(text.slice(at))
}

const field = by("search"), results = by("results")
let chosen = 0

const choose = at => {
  const items = [...results.querySelectorAll("li[data-hit]")]
  if (!items.length) return
  chosen = (at + items.length) % items.length
  items.forEach((item, i) => item.classList.toggle("chosen", i === chosen))
  items[chosen].scrollIntoView({block: "nearest"})
}

const search = async () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(word => word)
  results.hidden = !words.length
  if (!words.length) return
  await load()
  const hits = pieces.map(piece => [score(piece, words), piece]).filter(hit => hit[0])
  hits.sort((a, b) => b[0] - a[0])
  results.replaceChildren()
  for (const [, piece] of hits.slice(0, 20)) {
    const item = document.createElement("li"), link = document.createElement("a")
    const where = document.createElement("small"), text = document.createElement("small")
    item.dataset.hit = ""
    link.href = root + piece.u
    marked(link, piece.t, words)
    where.textContent = piece.p === piece.t ? "" : piece.p
    marked(text, excerpt(piece.x, words[0]), words)
    link.append(where, text)
    item.append(link)
    results.append(item)
  }
  if (!hits.length) {
    const item = document.createElement("li")
    item.className = "none"
    item.textContent = "nothing found"
    results.append(item)
  }
  choose(0)
}

field.addEventListener("input", search)
field.addEventListener("keydown", event => {
  if (event.key === "ArrowDown") choose(chosen + 1)
  else if (event.key === "ArrowUp") choose(chosen - 1)
  else if (event.key === "Enter") results.querySelector(".chosen a")?.click()
  else if (event.key === "Escape") { field.value = ""; results.hidden = true; field.blur() }
  else return
  event.preventDefault()
})
document.addEventListener("keydown", event => {
  const typing = /^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName)
  const asked = (event.key === "/" && !typing) || (event.key === "k" && (event.ctrlKey || event.metaKey))
  if (asked) { field.focus(); event.preventDefault() }
})
document.addEventListener("click", event => { if (!event.target.closest(".search")) results.hidden = true })
