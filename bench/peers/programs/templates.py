# Text from a template and data: values, loops, conditions; a letter, a page, a table; plain Python.
import re
from functools import reduce


def look_up(data, path):
    return reduce(lambda v, key: v[key], path.split("."), data)


def escaped(s):
    return s.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(text, data):
    each = re.search(r"(?s)\{\{#(each|if) ([\w.]+)\}\}(.*?)\{\{/\1\}\}", text)
    if each:
        kind, path, body = each.groups()
        v = look_up(data, path)
        middle = (render(body, data) if v else "") if kind == "if" else "".join(
            render(body, {**data, **item}) for item in v)
        return render(text[:each.start()], data) + middle + render(text[each.end():], data)
    return re.sub(r"\{\{([\w.]+)(:[^}]*)?\}\}",
                  lambda m: escaped(format(look_up(data, m[1]), (m[2] or ":")[1:])), text)


letter = """Dear {{who.name}},

you ordered {{count}} things{{#if gift}}, one of them as a gift{{/if}}:
{{#each items}}  {{n:>2}} x {{what:<12}} {{price:>8.2f}}
{{/each}}  total {{total:>19,.2f}}
"""
items = ({"n": 2, "what": "teapot", "price": 24.5}, {"n": 12, "what": "cup & saucer", "price": 7.25},
         {"n": 1, "what": "<tray>", "price": 1150.0})
total = sum(i["n"] * i["price"] for i in items)
print(render(letter, {"who": {"name": "Ada"}, "count": len(items), "gift": True, "items": items, "total": total}))
print(render("<ul>{{#each rows}}<li>{{a}}</li>{{/each}}</ul>", {"rows": ({"a": 1}, {"a": "x > y"})}))
try:
    render("{{nobody}}", {})
except KeyError:
    print("missing: key")


def table_text(rows, names):
    cells = [names] + [[str(r[n]) for n in names] for r in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = [" | ".join(c.ljust(w) for c, w in zip(row, widths)) for row in cells]
    return "\n".join([lines[0], "-|-".join("-" * w for w in widths)] + lines[1:])


print(table_text(items, ("what", "n", "price")))
