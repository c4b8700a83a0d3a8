/* generate_kits.c — loops of the random programs that are put together from forms: queues cut at their head, memos,
 * recursions on arrays and lists, functions in lists, rows that grow, walks over texts, indices that run past an end,
 * sizes that were computed, ways that sizes decide, joined texts. */
#include <string.h>

#include "tests/diff/generate_inner.h"

#define PICK(g, list) (list)[gen_below(g, (int)(sizeof(list) / sizeof(list)[0]))]
#define SUM "let s$ = ?0'0.0'0.0'f32(0)'1?"

enum { BEFORE = 9, HEADS = 6, USES = 44 };

/* Statements before a loop, its head with a first statement, what its body is made of, and what is printed at the
 * end. */
typedef struct Kit {
  const char *before[BEFORE], *heads[HEADS], *uses[USES], *after;
  int guarded; /* per cent that stand in `try` */
} Kit;

/* `$` is the pattern's number, ?a'b'c? one of the three, `I `F `B `T an expression of that type, `7 a number up to
 * 7. */
static void put(Gen *g, const char *form, const char *end, int number) {
  for (; form < end; form++) {
    if (*form == '$') {
      gen_put(g, "%d", number);
    } else if (*form == '`') {
      char what = *++form;
      if (what >= '0' && what <= '9') gen_put(g, "%d", gen_below(g, what - '0' + 1));
      else gen_expr(g, what == 'I' ? INT : what == 'F' ? FLOAT : what == 'B' ? BOOL : TEXT, 1);
    } else if (*form == '?') {
      const char *close = strchr(form + 1, '?'), *chosen = form + 1;
      int count = 0;
      for (const char *c = form; c < close; c++)
        if ((c == form || *c == '\'') && gen_below(g, ++count) == 0) chosen = c + 1;
      put(g, chosen, chosen + strcspn(chosen, "'?"), number);
      form = close;
    } else {
      gen_put(g, "%c", *form);
    }
  }
}

static void put_form(Gen *g, const char *form, int number) { put(g, form, form + strlen(form), number); }

static const char *one_of(Gen *g, const char *const *forms, int room) {
  int count = 0;
  while (count < room && forms[count]) count++;
  return forms[gen_below(g, count)];
}

static const Kit queue = {
  .before = {"let w$ = ?7'12'23'40'1?", "let g$ = map(i => map(k => (i * 3 + k * ?5'2'1?) % w$, 0..i % 3 + 1), 0..w$)",
             "let e$ = ?zeros(w$)'map(i => 0, 0..w$)'map(i => i > 90, 0..w$)?",
             "let q$ = ?(0,)'(0, 1)'()'(w$ - 1, 0)'map(i => i % w$, 0..`9)'map(i => i % w$, 0..50)?", SUM,
             "let h$ = ?()'q$'0?", "let c$ = 0", "let t$ = 0"},
  .heads = {"while ?len(q$) > 0'len(q$)'q$ != ()? and t$ < ?40'200'9? { t$ += 1; c$ = q$[0]; q$ = q$[1:]",
            "while t$ < 30 { t$ += 1; if len(q$) == 0 { break }; let (b$, ...r$) = q$; c$ = b$; q$ = r$",
            "for u$ in 0..?20'60? { t$ = u$; if len(q$) == 0 { q$ = ?(1 % w$, 0)'(t$ % w$,)? }; "
            "c$ = q$[0]; q$ = q$[1:]", "for u$ in 0..40 { t$ += 1; c$ = q$[?0'-1?]; q$ = q$[1:]",
            "while len(q$) > 0 and t$ < 90 { t$ += 1; c$ = q$[?0'0'-1?]; q$ = q$[1:]"},
  .uses = {"for d$ in g$[c$ % w$] { if e$[d$] == 0 { e$[d$] = 1; q$ += (d$,) } }",
           "for d$ in g$[c$ % w$] { if e$[d$] == 0 { e$[d$] = 1; q$ += (d$,) } }",
           "for d$ in g$[c$ % w$] { if not e$[d$] { e$[d$] = true; q$ = q$ + (d$,); s$ += 0.5 } }",
           "for d$ in (c$ - 1, c$ + 1) { if d$ >= 0 and d$ < w$ and "
           "e$[d$] == 0 { e$[d$] = ?1'true't$ + 1?; q$ += (d$,) } }", "if c$ % 3 != 1 { q$ += (c$ * 2 % w$,) }",
           "q$ += ((c$ + 1) % w$,); if len(q$) > 9 { q$ = q$[3:] }", "s$ += c$ * 0.5", "s$ = s$ * 0.5 + len(q$)",
           "if t$ % 7 == 3 { q$ = q$[1:] }", "if t$ % 5 == 2 { q$ = (c$,) + q$ }", "if t$ == 6 { h$ = q$ }",
           "h$ = q$", "if t$ == 9 { print(q$, c$) }", "if len(q$) > 4 { q$[0] += 1; q$[-1] = c$ }",
           "if len(q$) > 3 { q$ = q$[?1:-1'2:'len(q$):':-1'-2:'1:3'-1:'::-1?] }", "if c$ == 5 { continue }",
           "s$ += q$[0]", "for d$ in q$ { s$ += d$ }", "q$ += q$[:2]; q$ = q$[?1:'3:?]",
           "if s$ > 30 { ?break'q$ = q$[4:]? }", "if `B { q$ += (0,) }"},
  .after = "print(s$, q$, h$, e$, t$)", .guarded = 35};

/* Pairs and records in a queue. */
static const Kit pairs = {
  .before = {"let w$ = ?5'9'20?", "let q$ = ?((0, 0),)'((0, 0.0),)'((0, n), (1, 2))?",
             "let e$ = map(i => ?-1'-1.0'nil?, 0..w$)",
             "let r$ = ?({v: 0, d: 0},)'({v: 1, d: 0.5, a: x},)'({v: 0, d: \"r\"},)?", SUM, "let t$ = 0",
             "let h$ = nil"},
  .heads = {
      "while len(q$) > 0 and t$ < 70 { t$ += 1; let (c$, b$) = q$[0]; q$ = q$[1:]",
      "for u$ in 0..30 { if q$ == () { break }; t$ += 1; let b$ = q$[0][1]; let c$ = q$[0][0]; q$ = q$[1:]",
      "while len(r$) > 0 and t$ < 40 { t$ += 1; let o$ = r$[0]; r$ = r$[1:]; let c$ = o$.v; let b$ = t$; if t$ < 25 { "
      "r$ += (?{...o$, v: (c$ + 1) % w$}'o$'{v: (c$ * 3 + 1) % w$, d: o$.d + o$.d}'{v: t$ % w$, d: o$.d}?,) }"},
  .uses = {"if e$[c$] == ?nil'-1? { e$[c$] = b$; q$ += (((c$ + 1) % w$, b$ + 1), ((c$ * 2 + 1) % w$, b$ + "
           "?1'0.5'2?)) }", "for d$ in 1..3 { let k$ = (c$ * d$ + 1) % w$; if t$ < 30 { q$ += ((k$, b$ + d$),) } }",
           "if c$ % 2 == 0 { q$ += ((c$ // 2, b$),) }", "s$ += b$ * 0.5",
           "if t$ % 4 == 1 { r$ += ({v: c$, d: ?b$'s$'\"q\"?},) }",
           "if len(r$) > 3 { s$ += r$[0].v; r$ = r$[?1:'2:'1:-1?] }", "if len(q$) > 5 { q$ = q$[?2:':-1'1:4?] }",
           "if len(q$) > 1 { q$[0] = (c$, b$ + 1) }", "if len(r$) > 1 { r$[-1].v += 1; r$[0].d = r$[-1].d }",
           "if t$ == 7 { print(q$, r$, e$) }", "if t$ == 5 { h$ = q$ }", "h$ = (c$, b$)", "if c$ == 3 { continue }",
           "if h$ != nil and h$[0] > c$ { s$ += 1 }", "q$ = ((c$, b$),) + q$; q$ = q$[1:]", "s$ += len(q$) + c$"},
  .after = "print(s$, q$, r$, e$, h$, t$)", .guarded = 30};

static const Kit memo = {
  .before = {"let d$ = ?{}'{a: 1}'{\"0\": 0, \"1\": 1}'{b: 0.5, \"2\": 3}?", "let m$ = ref(?{}'{\"3\": 2}?)",
             "let t$ = ref(map(i => ?nil'nil'if i == 4 { 0.5 } else { nil }?, 0..?30'9?))",
             "fn r$(k, d) { let w = str(k); if w in d { return (d[w], d) }; if k < 2 { return (?k'k * 0.5'1.0?, "
             "d) }; let (a, b) = r$(k - 1, d); let (o, z) = r$(k - 2, b); z[w] = a + o; (z[w], z) }",
             "fn v$(k) { let w = ?str(k)'f\"{k}\"'f\"{k % 5}:{k}\"'str(k * 0.5)?; "
             "if w in m$.value { return m$.value[w] }; "
             "let o = if k < 2 { ?k'1.0'k * 0.5'1? } else { v$(k - 1) ?+'-'*? v$(k - ?2'2'3?) }; m$.value[w] = o; o }",
             "fn y$(k) { let o = t$.value[k]; if o != nil { return o }; let z = if k < 2 { ?k'1.0'k * 0.5? } else { "
             "y$(k - 1) ?+'-? y$(k ?- 2'// 2?) }; t$.value[k] = z; z }", SUM, "let h$ = ?nil'd$?", "let c$ = `9"},
  .heads = {"for u$ in 0..?5'20'40'n? { c$ = (c$ * ?3'5'7? + ?1'u$'2?) % ?7'11'17?; "
            "let k$ = ?str(c$)'f\"{c$}\"'f\"{c$},{u$ % 3}\"'str(u$ % 6)'\"abcdefg\"[c$ % 7]'str(c$ * 0.5)?",
            "let u$ = 0\n"
            "  while u$ < ?9'30? { u$ += 1; c$ = if c$ % 2 == 0 { c$ // 2 } else { c$ * 3 + 1 }; let k$ = str(c$)"},
  .uses = {"if k$ in d$ { s$ += d$[k$] } else { d$[k$] = ?u$'c$ * 0.5'len(d$)'s$? }",
           "d$[k$] = (if k$ in d$ { d$[k$] } else { 0 }) + ?1'0.5'c$?",
           "if not (k$ in d$) { d$[k$] = c$ }; s$ = s$ * 0.5 + d$[k$]", "if u$ == 9 { print(k$, d$) }",
           "if len(d$) > 6 { d$ = ?{}'{...d$, z: 1}'{a: u$}? }", "s$ += len(d$)",
           "if k$ in d$ and u$ % 4 == 1 { d$ = remove(d$, k$) }", "if u$ == 5 { h$ = d$ }",
           "try { s$ += d$[str(c$)] } catch e { s$ -= 1; print(e.message) }", "s$ += v$(?c$ % 15'u$ % 12'9?)",
           "s$ += y$(?c$ % 9'u$ % 9'u$'c$?)", "let (o$, z$) = r$(c$ % 12, d$); s$ += o$?'; d$ = z$'; h$ = z$?",
           "for (o$, z$) in d$ { s$ += z$ }", "if k$ in d$ and d$[k$] > 30 { break }",
           "if k$ in d$ { continue }; d$[k$] = s$", "d$[k$] = u$", "if `B { d$[k$] = `F }", "if d$ == h$ { s$ += 1 }",
           "for z$ in keys(d$) { if z$ > k$ { s$ += 0.25 } }", "d$.q = s$"},
  .after = "print(s$, d$, keys(d$), m$.value, t$.value, h$)", .guarded = 35};

/* Recursions that change an array and give it: errors in their midst, arrays that others hold, elements that are read
 * behind the calls. */
static const Kit changed = {
  .before = {"let w$ = ?zeros(7)'arange(9)'arange(5) * 0.5'i32(arange(6))'zeros(0)'arange(64)'x'arange(12) * 1000?",
             "fn p$(a, i, k) { if k == 0 ?or i >= len(a)'or i > 40'? { return a }; "
             "?a[i] += k'a[i] = k'a[i % len(a)] = a[-1] + 1'let b = a; a[i] -= 1; a[0] = b[-1]'a[i] *= 0.5?; "
             "a = p$(a, i + ?1'2'k?, k - 1); ?a[i] = a[0]'a[0] += 1'let c = a[i % 3]; a[-1] = c?; "
             "p$(a, ?2 * i + 1'i - 1'i?, k - ?1'2?) }",
             "fn q$(a, lo, hi) { if lo >= hi { return a }; (a[lo], a[hi]) = (a[hi], a[lo]); "
             "?a[hi] = a[lo]'a[lo + hi] += 1'a[lo] += 1?; a = q$(a, lo + 1, (lo + hi) // 2); "
             "q$(a, (lo + hi) // 2 + 1, hi - 1) }",
             "fn y$(a, b, i) { if i >= len(b) { return a }; a[?i'-1 - i'i + 1?] += b[?i'0'-1?]; y$(a, b, i + ?1'2?) }",
             "let v$ = ?w$'zeros(3)'nil?", SUM, "let t$ = 0"},
  .heads = {"for u$ in 0..?4'12'40'n? { t$ += 1", "while t$ < ?5'20'60? { t$ += 1; let u$ = t$ % 5"},
  .uses = {"w$ = p$(w$, u$ ?% 7'?, ?3'5'2?)", "w$ = p$(w$, u$ % 4, ?3'4?)", "w$ = q$(w$, ?0'u$ % 3?, ?len(w$) - 1'5?)",
           "v$ = p$(w$, 0, ?2'3?)", "if v$ != nil { w$ = p$(v$, u$ % 2, 3) }", "v$ = w$", "w$ = y$(w$, w$, u$ % 3)",
           "w$ = y$(w$, ?x'v$'w$ + 1'arange(3)?, 0)", "if w$[?0'u$ % len(w$)?] > 3 { w$ = q$(w$, 0, 3) }",
           "s$ += sum(w$)", "s$ = s$ * 0.5 + w$[?0'-1?]", "w$[0] = ?s$'u$'0?", "if t$ == 3 { print(w$, v$) }",
           "try { w$ = p$(w$, u$, ?40'9?) } catch e { print(e.message); s$ += 1 }", "w$ = q$(p$(w$, 1, 2), 0, 2)",
           "w$ = p$(w$, -9, 3)", "w$ = ?w$ % 1000'w$ * 1'zeros(4)?", "if `B { w$ = p$(w$, `3, 3) }",
           "let z$ = p$(w$, 1, 3); s$ += z$[0] - w$[0]", "if u$ == 2 { continue }"},
  .after = "print(s$, w$, v$, t$)", .guarded = 40};

/* Recursions with arrays by value, changed before the calls, between them and on some ways only. */
static const Kit copied = {
  .before = {"let w$ = ?zeros(7)'arange(9)'arange(5) * 0.5'i32(arange(6))'x'arange(12) * 1000'full(4, false)?",
             "let g$ = reshape(arange(?6'9'12?), (3, -1)) % ?5'2'7?",
             "fn p$(a, g, i, k) { if k <= 0 ?or i >= len(a)'or i > 40'? { return ?a[i % len(a)]'a[0] + a[-1]'i? }; "
             "let t = ?0'0.5'a[i % len(a)]?; let (b, h, e) = (a, a, g); "
             "?a[i % len(a)] = k'b[i % len(a)] = a[-1]'g[i % 3, 0] += 1'b[0] = k > 2'if k % 2 == 0 { a[0] = i }'"
             "a[i] = t'while i < 2 { b[i] = a[1]; i += 1 }'? ; "
             "for c in 0..?2'k'3? { if ?a[c % len(a)] == k'a[c % len(a)] == 0'c != 1'g[c % 3, 0] < 4'true? { "
             "?let h = a; h[c] = b[0]'a[c] = c'b[-1] = a[c % len(a)] * 0.5'g[c % 3, -1] = c'let h = b; a = b'"
             "let e = g; e[0, 0] = k; t += e[c % 3, 0]'if t > 3 { continue }'if t > 9 { break }'?; "
             "t += p$(?a'a'b'h?, ?g'g'e?, i + ?c'1'0?, k - ?1'2?); "
             "?t += a[0] + b[-1]'a[c] = 0'a = b'b = a'g[0, 0] = 0'? } }; "
             "?t += p$(b, g, i + 1, k - 2)'t = t * 0.5 + a[0]'"
             "try { t += p$(a, g, i + 9, k - 2) } catch e { t += b[0] }'?; t }",
             "fn q$(a, b, k) { if k == 0 { return b }; a[k % len(a)] += b[0]; b[k % len(b)] += ?1'a[0]'k?; "
             "b = q$(a, b, k - 1); ?a[0] = b[-1]'b[0] -= 1'?; q$(a, b, k - 2 + k % 2) }",
             SUM, "let t$ = 0"},
  .heads = {"for u$ in 0..?4'12'n? { t$ += 1", "while t$ < ?5'20? { t$ += 1; let u$ = t$ % 5"},
  .uses = {"s$ += p$(w$, g$, ?0'u$'u$ % 4?, ?3'2'4?)", "s$ += p$(w$, g$, 1, u$ % 5)", "s$ += p$(w$, w$, 0, 3)",
           "w$[?0'-1'u$?] = ?s$'u$'1?", "g$[u$ % 3, 0] = ?0'3'u$?", "s$ = s$ * 0.5 + p$(w$[:3], g$, 0, 3)",
           "g$ = q$(?w$ * 1'arange(4)?, g$[0], 3) + g$", "if t$ == 3 { print(w$, g$) }",
           "let z$ = q$(arange(5), ?arange(4)'arange(5)?, ?3'4?); s$ += sum(z$)",
           "try { s$ += p$(w$, g$, u$ * 5, 3) } catch e { print(e.message); s$ += 1 }",
           "if s$ > 1e5 { s$ = 0.25 }", "if `B { s$ += p$(w$, g$, 0, 2) }",
           "let v$ = w$; s$ += p$(v$, g$, u$, 2) + w$[0]"},
  .after = "print(s$, w$, g$, t$)", .guarded = 40};

/* Recursions with parts of arrays: ends of all kinds, steps, loops over them, errors inside, whole operations. */
static const Kit halved = {
  .before = {"let w$ = ?zeros(7)'arange(9)'arange(33) * 0.5'i32(arange(6))'x'arange(1)'arange(0)'arange(5) > 2?",
             "fn p$(a, b, k) { let n = len(a); if n <= ?0'1'2? or k <= 0 { "
             "return ?0'k'0.5'if n > 0 { a[0] } else { 0.0 }'if n > 0 { a[-1] + 0.5 } else { 0.25 }? }; "
             "let t = ?0.0'0.5'a[n // 2] * 0.5'k?; let c = ?a'a[1:]'a[k % n:]'a[:-1]'a[::2]?; "
             "?for i in 0..n { t += a[i] * 0.5 }'for v in a { t += v }; t = t * 0.5'if a[0] > 2 { t += 1.0 }'"
             "while len(c) > 2 { c = c[1:]; t += c[0] }'if len(c) > 3 { c = c[?1:3':2':n?] }'t += a[?k'n'-k - 1?]'?; "
             "t += p$(?a[:n // 2]'a[n // 2:]'a[1:]'a[::2]'c'a[k:-1]'a[3:1]'a[-k:]?, ?b'b'b[1:]'a?, k - ?1'1'2?); "
             "?t = t * 0.5 - p$(?c'a[n // 2:]'a[1::2]?, ?b'b'c?, k - ?1'2?)'"
             "if k % 2 == 0 { t += p$(c, b, k - 1) * ?0.5'b[0]'1.0? }'t += sum(a)'"
             "try { t += p$(a[1:], b, k - 2) } catch e { t -= 1.5 }'?; t + 0.5 }", SUM, "let t$ = 0"},
  .heads = {"for u$ in 0..?4'12'n? { t$ += 1", "while t$ < ?5'20? { t$ += 1; let u$ = t$ % 5"},
  .uses = {"s$ += p$(w$, w$, ?3'2'4'6?)", "s$ += p$(w$, ?x'arange(3) * 0.5?, u$ % 5)",
           "s$ += p$(w$[?1:':u$'::2?], w$, 3)",
           "if len(w$) > 0 { w$[?0'-1?] = ?u$'1'0? }", "w$ = ?w$[1:]'w$ * 1'concat((w$, w$))[:40]?",
           "try { s$ += p$(w$, w$[:1], 4) } catch e { print(e.message); s$ += 1 }", "if t$ == 3 { print(w$, s$) }",
           "if s$ > 1e5 { s$ = 0.25 }", "if `B { s$ += p$(x, w$, 3) }",
           "let v$ = w$[:u$]; s$ = s$ * 0.5 + p$(v$, v$, 2)"},
  .after = "print(s$, w$, t$)", .guarded = 40};

/* Recursions with lists of other lengths, with parts of them, and with changed ones. */
static const Kit deeper = {
  .before = {"let w$ = ?()'(1,)'(3, 1, 2)'(0.5, 2.5)'map(i => i * 7 % 5, 0..9)'(`F, `F)'(1, 2.5)'(u8(1), u8(2))?",
             "fn p$(xs, k) { if k == 0 ?'or len(xs) > 7'or len(xs) == 0? { "
             "return ?len(xs)'xs[0]'xs[-1] + len(xs)'0.5'1? }; let t = ?0'0.5'k?; "
             "?'let ys = xs; if len(ys) > k { ys[k] = ys[0] }; 'let ys = xs + (k,); ys[0] += 1; 'let ys = (k,) + xs; '"
             "for y in xs { t += y }; 'if k in xs { t += 3 }; 'let ys = xs[1:-1]; ys += ys; t += len(ys); '"
             "let ys = xs; for i in 0..k { ys += (i,); if len(ys) > 1 { ys[1] = t } }; t += ys[-1]; ?"
             "for c in 0..?2'k'3? { ?if c != 1 { 't += 1; if k > 1 { ?t += p$(?xs + (c,)'xs[1:]'xs[:-1]'xs + xs'"
             "xs[c:] + xs[:c]'(c,) + xs'xs'xs + (c * 0.5,)'xs[:len(xs) // 2]'xs[-k:]?, k - 1) } }; "
             "?'if len(xs) > 2 { t += xs[k] }; 't += p$(xs, k - 1); 't = t * 0.5 + len(xs); ?t }",
             SUM, "let t$ = 0"},
  .heads = {"for u$ in 0..?4'12'n? { t$ += 1", "while t$ < ?5'20? { t$ += 1; let u$ = t$ % 5"},
  .uses = {"s$ += p$(w$, ?3'2'4'u$ % 4?)", "s$ += p$((), ?2'3'4?)", "s$ += p$(w$ + (u$,), 3)", "w$ += (?u$'0'1.5?,)",
           "w$ = w$[?1:':-1':3'-2:?]", "s$ = s$ * 0.5 + p$(w$[:2], 3)", "if len(w$) > 0 { w$[0] = ?s$'u$'0? }",
           "try { s$ += p$(w$, ?4'3?) } catch e { print(e.message); s$ += 1 }", "if t$ == 3 { print(w$) }",
           "s$ += p$(map(i => i * ?1'2'0.5?, 0..u$ % 5), 3)", "if `B { s$ += p$(w$, 2) }"},
  .after = "print(s$, w$, t$)", .guarded = 40};

/* Lists and records kept at keys. */
static const Kit groups = {
  .before = {"let d$ = ?{}'{a: ()}'{b: (1, 2.5), a: (0,)}?", "let r$ = {}", SUM, "let h$ = nil"},
  .heads = {"for u$ in 0..?6'25'n'45? { let k$ = ?\"abc\"[u$ % 3]'str(u$ % 4)'str(u$ * u$ % 7)'\"a\"'f\"{u$ // 5}\"?; "
            "let y$ = ?u$'u$ * 0.5'u$ % 4'`F?", "for k$ in ?\"abcabdaa\"'(\"a\", \"b\", \"a\", \"c\")'split(\"to be or "
                                                "not to be\")? { let u$ = len(d$); let y$ = ?codes(k$)[0]'u$ * 0.5?"},
  .uses = {"d$[k$] = (if k$ in d$ { d$[k$] } else { () }) + (y$,)",
           "if not (k$ in d$) { d$[k$] = () }; d$[k$] += (y$,)",
           "if k$ in d$ { d$[k$] += (y$,) } else { d$[k$] = (y$,) }",
           "if k$ in d$ and len(d$[k$]) > 2 { s$ += d$[k$][0]; d$[k$] = d$[k$][1:] }",
           "if k$ in d$ and len(d$[k$]) > 0 { d$[k$][-1] += 1 }",
           "r$[k$] = if k$ in r$ { {n: r$[k$].n + 1, s: r$[k$].s + y$} } else { {n: 1, s: y$} }",
           "if k$ in r$ { r$[k$].n += 1; s$ += r$[k$].s } else { r$[k$] = {n: 0, s: ?y$'1'0.5?} }",
           "for (o$, z$) in d$ { s$ += len(z$) }", "for (o$, z$) in r$ { if z$.n > 1 { s$ += z$.s } }",
           "if u$ == 8 { h$ = d$ }", "h$ = r$", "if u$ == 7 { print(d$, r$) }", "if k$ == \"c\" { continue }",
           "s$ += d$[k$][0]", "s$ = s$ * 0.5 + r$[k$].n", "for z$ in d$[k$] { s$ += z$ }"},
  .after = "print(s$, d$, r$, h$)", .guarded = 45};

static const Kit calls = {
  .before = {"let w$ = `F",
             "let o$ = (z => z * 0.5, z => z + w$, ?sin'abs'z => if z > 2 { 1.0 } else { z }'half'z => { print(z); "
             "z }?, (z, y=2) => z - y)", "let b$ = ?(add, maximum, minimum)'((y, z) => y * z, add, (y, z) => y - 0.5)?",
             "let r$ = {p: z => z + 1, q: ?abs'z => z * z'o$[0]?}",
             "let k$ = ?k => (z => z * 0.5 + k)'k => { let y = k * 2; z => z - y }'k => o$[k % 4]?",
             "let h$ = ?o$[0]'o$[1]'z => z?", "let c$ = ()", SUM},
  .heads = {"for u$ in 0..?6'20'n'2 * n? { let y$ = ?u$ * 0.5'u$'1.5?",
            "for (u$, y$) in enumerate(?x'(1, 2.5, 3)?) { let a$ = y$",
            "for q$ in o$ { s$ += q$(1.5); let u$ = len(c$); let y$ = s$"},
  .uses = {"s$ = o$[?0'1'-1'2?](s$)", "s$ = o$[u$ % ?4'2'3'5?](s$)", "s$ = b$[?u$ % 3'0'(u$ + 1) % 3?](s$, y$)",
           "s$ += r$[?\"p\"'\"q\"'if u$ % 3 == 0 { \"p\" } else { \"q\" }?](y$)",
           "h$ = o$[u$ % 3]", "s$ += h$(y$)", "if s$ > 5 { h$ = k$(u$) } else { h$ = o$[2] }",
           "c$ += (?z => z + y$'z => z * u$'k$(u$)'h$'o$[u$ % 4]'z => h$(z) + 1?,)",
           "c$ += (?z => z + y$'z => z * s$'k$(u$)?,)", "if len(c$) > 0 { s$ += c$[-1](y$) }",
           "if len(c$) > 3 { s$ = s$ * 0.25 + c$[u$ // 2](1.0) }", "for z$ in c$ { s$ += z$(0.5) }",
           "o$[u$ % 4] = k$(u$)", "(o$[0], o$[1]) = (o$[1], o$[0])", "if h$ == o$[0] { s$ += 1 }",
           "s$ += sum(array(map(q => q(y$), o$)))", "if s$ > 1e4 { s$ = 0.5 }",
           "try { s$ += o$[u$](y$) } catch e { s$ -= 0.5 }", "if u$ == 5 { print(s$, map(q => q(0.5), c$)) }",
           "r$[\"pqr\"[u$ % 3]] = h$", "if `B { h$ = o$[1] }", "let l$ = z => o$[u$ % 2](z) + y$; s$ = l$(s$)",
           "s$ = fori_loop(0, 3, (q, z) => f64(o$[0](z)), f64(s$))", "s$ += o$[if y$ > 1 { 0 } else { 1 }](y$)"},
  .after = "print(s$, map(q => q(1.5), c$), h$(2.0))", .guarded = 20};

/* Cells and functions over them, made at each trip. */
static const Kit cells = {
  .before = {"let c$ = ()", "let l$ = ()", "let z$ = ref(?0.5'1?)", SUM,
             "let k$ = v => { let o = ref(v); w => { o.value ?+= w'= o.value * 0.5 + w'= w?; o.value } }"},
  .heads = {"for u$ in 0..?5'18'n? { let y$ = ?ref(u$)'ref(u$ * 0.5)'z$'ref(s$)?"},
  .uses = {"c$ += (z => { y$.value += z; y$.value },)", "c$ += (k$(?u$'s$'1.5?),)", "l$ += (y$,)",
           "l$ += (ref(?u$'s$'0.5?),)", "if len(c$) > 0 { s$ = s$ * 0.5 + c$[?-1'0'u$ // 2 % len(c$)?](?0.5'1'u$?) }",
           "if len(l$) > 0 { l$[?-1'0'u$ // 3 % len(l$)?].value ?*= 0.5'+= 1'= s$? }", "z$ = y$",
           "z$.value += ?1'0.5?", "for q$ in l$ { s$ += q$.value }", "for q$ in c$ { s$ += q$(0.25) }",
           "if u$ == 4 { print(map(q => q.value, l$)) }", "if len(l$) > 1 { (l$[0], l$[-1]) = (l$[-1], l$[0]) }",
           "if y$ == z$ { s$ += 1 }", "if y$.value > 3 { continue }", "if s$ > 1e6 { s$ = 1 }"},
  .after = "print(s$, z$.value, map(q => q.value, l$), map(q => q(1), c$))", .guarded = 20};

static const Kit rows = {
  .before = {"let r$ = ?()'((),)'((1,), (2, 3.5))'map(i => (), 0..5)'((0.5,), ())?", "let w$ = ()", SUM,
             "let h$ = ?()'r$?"},
  .heads = {"for u$ in 0..?7'20'n'45? { let y$ = ?u$'u$ * 0.5'f32(u$)'u$ % 3?", "for y$ in x { let u$ = len(r$)"},
  .uses = {
      "r$ += (?(y$,)'()'(u$, y$)'w$'map(k => k + y$, 0..u$ % 4)?,)",
      "r$ += (?(y$,)'(u$, y$)'map(k => k * 0.5, 0..u$ % 3 + 1)?,)",
      "if len(r$) > 0 { r$[-1] += (y$,) }", "if len(r$) > 1 { r$[u$ % len(r$)] += (?y$'s$'len(r$)?,) }",
      "w$ += (y$,); if len(w$) > 3 { r$ += (w$,); w$ = () }", "for k$ in 0..u$ % 4 { r$[-1] += (k$ * y$,) }",
      "for k$ in 0..len(r$) { s$ += len(r$[k$]) }", "for q$ in r$ { for z$ in q$ { s$ += z$ } }",
      "if u$ > 3 { s$ += r$[-1][-1] }", "s$ += r$[0][0]", "r$[0] = r$[-1]",
      "if u$ == 5 { h$ = r$ }", "if len(r$[0]) > 4 { r$[0] = r$[0][1:] }", "r$[-1][0] += 1",
      "if len(r$) > 5 { r$ = r$[?1:':-2'::-1'::2?] }", "if u$ == 11 { print(r$[-1], w$) }",
      "if len(r$) > 0 { r$ += (map(k => (if k > 0 { r$[-1][k - 1] } else { 0 }) + ?1'y$?, 0..len(r$[-1]) % 6 + 1),) }",
      "for (k$, q$) in enumerate(r$) { if len(q$) > k$ { s$ += q$[k$] } }", "w$ = ?()'r$[0]'w$[1:]?",
      "if y$ in w$ { continue }", "if len(r$) > 2 { (r$[0], r$[1]) = (r$[1], r$[0]) }", "h$ = r$[-1]"},
  .after = "print(s$, r$, w$, h$, join(map(r => join(map(str, r), \",\"), r$), \";\"))", .guarded = 40};

static const Kit stacked = {
  .before = {"let r$ = ?()'([1.0, 2.0, 3.0],)'([1, 2, 3],)?", "let m$ = zeros((?0'1?, 3))", "let w$ = x", SUM},
  .heads = {"for u$ in 0..?5'16'n? { let y$ = ?u$ * 0.5'u$'f32(u$)?"},
  .uses = {"r$ += ([y$, u$, 1.0],)", "r$ += (?ones(3) * y$'arange(3)'zeros(3)'m[u$ % n]?,)",
           "m$ = concat((m$, [[y$, 1.0, u$]]))", "w$ = concat((w$, [y$]))",
           "if len(r$) > 0 { r$[-1][?0'u$ % 3'1:?] += 1 }", "if len(r$) > 1 { r$[u$ // 2 % len(r$)] = r$[0] }",
           "if len(r$) > 0 { s$ += sum(r$[-1]) }", "if len(r$) > 2 { s$ += sum(stack(r$)[?:, 0'-1'1:'0? ]) }",
           "s$ += sum(m$[-1:])", "s$ += len(w$) + w$[-1]", "w$ = w$[1:]", "for q$ in m$ { s$ += q$[0] }",
           "m$[?0'-1?] = ?0.5'[1.0, 2.0, y$]?", "if len(r$) > 3 { r$ = r$[1:] }", "if u$ == 6 { print(r$, m$, w$) }",
           "for q$ in r$ { s$ += max(q$) }"},
  .after = "print(s$, r$, m$, w$)", .guarded = 40};

static const Kit letters = {
  .before = {"let t$ = ?\"a tale of two wefts\"'\"x=1.5;y=-2\"'\"\u00e4\u00f6 a \u20ac b\"'\"3 + 42*(7-1)\"'\"\"'`T "
             "+ \"abcabc\"'join(map(str, 0..n), \",\")'\"((a)b)(\"'\"1101\"?", "let o$ = \"\"", SUM, "let l$ = ()",
             "let i$ = 0"},
  .heads = {"for (u$, c$) in enumerate(t$) { let y$ = ?u$'codes(c$)[0]'u$ * 0.5?",
            "for (c$, d$) in zip(t$, t$[1:]) { let y$ = codes(d$)[0] - codes(c$)[0]; let u$ = len(o$)",
            "for (u$, y$) in enumerate(codes(t$)) { let c$ = ?text([y$])'t$[u$]?",
            "for u$ in 0..len(t$) { let c$ = t$[u$]; let y$ = codes(t$)[u$]",
            "while i$ < len(t$) { let c$ = t$[i$]; let u$ = i$; let y$ = i$; i$ += ?1'2'if c$ == \" \" { 2 } else { "
            "1 }?", "for (u$, (c$, y$)) in enumerate(zip(t$, ?x'0..9'codes(t$)?)) { let a$ = c$"},
  .uses = {
      "o$ += ?c$'upper(c$)'c$ + \"-\"'str(y$)'f\"{u$}{c$}\"'t$[u$]?",
      "if c$ ?== \"a\"'in \"0123456789\"'!= \" \"'< \"m\"'in \"aeiou\"? { s$ += y$ } else { ?continue'o$ += \".\"'s$ "
      "= 0? }", "if c$ in \"0123456789\" { s$ = s$ * 10 + parse_int(c$) }",
      "if c$ == \"(\" { s$ += 1 } else if c$ == \")\" { s$ -= 1 }",
      "if c$ == \" \" or c$ == \";\" { l$ += (o$,); o$ = \"\" }", "if len(o$) > 0 and o$[-1] == c$ { s$ += 0.5 }",
      "if u$ + 1 < len(t$) and t$[u$ + 1] == c$ { continue }", "s$ += (y$ * 31 + u$) % 97", "o$ = c$ + o$",
      "o$ = o$[1:]", "if t$[u$] == t$[len(t$) - 1 - u$] { s$ += 1 }", "s$ += find(t$, c$)",
      "if u$ == 4 { print(c$, y$, o$) }", "if starts_with(t$[u$:], \"ab\") { s$ += 2 }", "s$ += codes(t$[u$])[0] - 97",
      "o$ += text([(codes(c$)[0] - 97 + 3) % 26 + 97])", "try { s$ += parse_int(c$) } catch e { s$ -= 1 }",
      "l$ += (?c$'codes(c$)[0]'y$?,)", "if c$ == t$[-1] { s$ += 0.25 }", "s$ += parse_int(t$[u$])",
      "if c$ in t$[:u$] { s$ += 1 }", "if t$[u$ + 1] > c$ { s$ += 1 }", "if o$ == \"ab\" { break }",
      "o$ = if len(o$) > 4 { o$[2:] + c$ } else { o$ + c$ + c$ }", "l$ += (c$ + o$,); if len(l$) > 4 { l$ = l$[1:] }"},
  .after = "print(s$, o$, l$, i$)", .guarded = 40};

static const Kit joins = {
  .before = {"let l$ = ?()'(\"b\", \"a\")'split(\"a bb  c\")'split(\"x,y,,z\", \",\")'map(str, "
             "0..n)'map(q => f\"{q:.1f}\", unstack(x))?", "let t$ = ?\"\"'`T'\"1,2,3\"?", SUM},
  .heads = {"for u$ in 0..?4'12'n? { let y$ = ?str(u$)'f\"{u$:03d}\"'f\"{u$ * 0.25:.2f}\"'str(u$ * "
            "0.5)'\"\u00e9\"'t$[:3]'str(`F)?", "for y$ in split(?\"to be or not\"'\"a,b\"?) { let u$ = len(l$)",
            "for (u$, y$) in enumerate(?l$'map(str, unstack(x))?) { let a$ = 0"},
  .uses = {"l$ += (y$,)", "t$ += join(l$, ?\",\"'\"\"'\"--\"?)[:9]", "t$ = join(l$, ?y$'\" \"'\",\"?)[:60]",
           "t$ = join(split(t$, \",\"), \";\")", "l$ = sort(l$)", "if t$ > y$ { s$ += len(t$) }",
           "t$ = replace(t$, \"1\", \"one\")", "t$ += y$ + \" \"", "if len(l$) > 0 { l$[u$ % len(l$)] += y$ }",
           "l$ = split(t$)", "if y$ in l$ { s$ += 1 }", "t$ = t$[len(y$):]",
           "s$ += len(join(map(q => q + \"!\", l$), \" \"))", "t$ = if len(t$) > 30 { upper(t$[:5]) } else { t$ + y$ }",
           "l$ = l$[1:] + (y$,)", "if u$ == 3 { print(t$, l$) }", "for q$ in l$ { if q$ < y$ { s$ += 0.5 } }",
           "s$ += parse_float(y$)", "if t$[u$ % 5] == \"b\" { s$ += 1 }",
           "for q$ in split(t$, \",\") { s$ += len(q$) }", "t$ = trim(t$ + \"  \") + y$[::-1]"},
  .after = "print(s$, t$, l$, join(l$, \"+\"))", .guarded = 35};

static const Kit ends = {
  .before = {"let l$ = ?(1, 2.5, 3)'map(i => i * 2, 0..12)'map(i => i * 0.5, 0..40)'arange(9) * 0.5'x'p'()'(7, 1)?",
             "let z$ = zeros(?6'9'n?)", "let k$ = ()", "let i$ = 0", "let j$ = 0", SUM},
  .heads = {"for u$ in 0..?1'4'9? { i$ = ?0'u$'u$ - 2'len(l$) - 1'-1?; j$ = 0; try { while ?i$ < 30'l$[i$] < 90'l$[i$] "
            "!= 1000003'i$ < len(l$) + 2'true'l$[i$ + 1] > -50? and j$ < 50 { j$ += 1; i$ += ?1'1'2'3'-1'j$?"},
  .uses = {"s$ += l$[i$]", "s$ += l$[?i$ + 1'i$ - 1'i$ * 2'i$ // 2'i$ - j$'u$?]", "l$[i$] = ?1'j$'0.5?",
           "l$[j$ - 1] += 1", "if l$[i$] > l$[i$ + 1] { (l$[i$], l$[i$ + 1]) = (l$[i$ + 1], l$[i$]) }",
           "if s$ > 20 { break }", "k$ += (l$[i$],)", "z$[i$] = s$", "s$ += z$[?i$ - 2'j$'i$?]",
           "while l$[i$] < 5 { i$ += 1 }", "if i$ > 7 { i$ = -7 }", "if i$ % 3 == 1 { continue }",
           "z$[i$] += l$[i$ - 1]", "if j$ == 8 { print(i$, s$) }", "if `B { i$ += 1 }", "s$ += [1.0, 2.0, 0.5][i$]",
           "s$ += (1, 2.5, 0.25)[j$]", "s$ += \"abc\"[i$] == \"b\"", "for d$ in 0..3 { s$ += z$[i$ + d$] }"},
  .after = " catch e { print(e.message, e.kind, e.trace, i$, j$) } }\n  print(s$, k$, l$, z$)"};

static const Kit extents = {
  .before = {"let k$ = ?(`I) % 4 - 1'n // 2 - 1'n * 0 + 1'2 - n'len(unique(p)) - 1'argmax(x)'count_nonzero(x > "
             "0.5)'(`I) % 3'1'n - n?", SUM, "let z$ = x"},
  .heads = {"for u$ in 0..?1'4'8? { let y$ = ?k$'k$ + u$'u$ - 1'k$ * u$'u$ % 2'3 - u$'k$ - u$'u$ // 2?"},
  .uses = {"s$ += sum(arange(y$) * 0.5)", "s$ += sum(?zeros'ones'rand'eye?(y$))", "s$ += max(arange(y$))",
           "s$ += mean(ones(y$))", "z$ = concat((z$, zeros(y$)))", "s$ += sum(z$[:y$])", "s$ += len(z$[y$:])",
           "s$ += sum(reshape(arange(y$ * 2), (2, y$)))", "s$ += sum(reshape(arange(6), (y$, -1)))",
           "s$ += sum(ones(y$) + [1.0, 2.0, 0.5])", "s$ += sum((ones((y$, 2)) * 0.5) @ ones((2, y$)))",
           "for q$ in 0..y$ { s$ += q$ * 0.5 }", "s$ += len(map(q => q * 0.5, 0..y$))",
           "s$ += sum(stack(map(q => [q, 1.0], 0..y$)))", "s$ += sum(tile([1.0, 2.0], y$))",
           "s$ += sum(repeat(x, y$))", "s$ += len(sliding_window(arange(5), y$))",
           "s$ += 2 ** y$", "s$ += 1 << y$", "s$ += len(split(arange(6), y$))",
           "let w$ = full((y$, 3), u$ * 0.5); s$ += sum(w$ * [1.0, 2.0, 3.0]); if y$ == 2 { print(w$) }",
           "s$ += sum(cumsum(ones(y$)))", "s$ += linspace(0.0, 1.0, y$)[-1]", "s$ += sum(pad(x, y$))",
           "s$ += sum(roll(x, y$))", "s$ += sum(one_hot([0, 1], y$))", "s$ += sum(bincount([1, 2], minlength=y$))",
           "s$ += topk(x, y$)[0][0]", "s$ += sum(x[y$::2])", "s$ += x[y$]", "s$ += sum(x[y$] * zeros(y$))",
           "s$ += sum(ones((y$, k$)))", "s$ += sum(zeros(y$) + ones(?1'y$'k$?))",
           "s$ += sum(scan((c, q) => (c + q, c), 0.0, ones(y$))[1])", "s$ += fori_loop(0, y$, (q, c) => c + 0.5, 1.5)",
           "let o$ = zeros(y$); o$[0] = 1; s$ += sum(o$)", "s$ += sum(vmap(q => q * 2)(arange(y$)))",
           "if y$ > 2 { break }", "s$ += sum(min(ones((3, y$)), axis=0))", "s$ += sum(sum(ones((y$, 3)), axis=?0'1?))"},
  .after = "print(s$, k$, len(z$))", .guarded = 60};

/* Functions that ask for sizes, and go on with arrays of other sizes. */
static const Kit ways = {
  .before = {"fn p$(a, b) { let (l, h) = if len(a) ?<'<='>'=='!=? len(b) { (b, a) } else { (a, b) }; "
             "let o = zeros(len(a) + len(b) ?- 1''+ 1?); for k in 0..len(h) { o[k:k + len(l)] += h[k] * l }; "
             "?o'o[1:]? }",
             "fn q$(a) = if len(a) ?> 4'>= 3'== 6'< n'== n? { a[?:4'1:'::2'-2:'len(a) // 2:?] } "
             "else { ?a'a * 2'a[:1]? }",
             "fn y$(a, k) { if a.shape[0] ?> 1'!= 3'>= 2 * k'< 9? { a = ?a[1:]'concat((a, [1.0]))'a[:k]? }; "
             "if len(a) ?== 0'< 2? { return ?zeros(2)'a'[7.0]? }; a * len(a) }",
             "let w$ = ?x'arange(6.0)'arange(3) * 0.5'ones(1)'zeros(0)?", SUM},
  .heads = {"for u$ in 0..?4'9'17? { let a$ = ?w$'x'arange(u$ * 1.0)'arange(6.0)'ones(7 - u$ % 3)?"},
  .uses = {"s$ += sum(p$(a$, w$))", "s$ += sum(p$(w$, a$[:3]))", "s$ += len(q$(a$))", "s$ += sum(q$(q$(a$)))",
           "s$ += sum(y$(a$, u$ % 4))", "w$ = q$(w$)", "w$ = y$(w$, ?2'u$?)[:9]", "s$ += q$(a$)[?0'-1?]",
           "s$ += sum(grad(a => sum(q$(a) ** 2))(a$))", "s$ += sum(grad(a => sum(p$(a, w$) ** 2))(a$))",
           "s$ += sum(grad(a => sum(y$(a, 2) ** 2))(a$))", "s$ += sum(vmap(a => sum(q$(a)))(stack((a$, a$ + 1))))",
           "s$ += sum(a$[:2] * q$(a$)[:2])", "let b$ = if len(w$) > len(a$) { w$ } else { a$ }; s$ += b$[?0'-1?]",
           "if len(a$) > 3 { a$ = a$[1:] }; s$ += sum(a$ * a$)", "if u$ == 2 { print(q$(a$), y$(w$, 1)) }"},
  .after = "print(s$, w$)", .guarded = 60};

void gen_kit(Gen *g) {
  static const Kit *const kits[] = {&changed, &changed, &copied, &copied, &halved, &halved, &deeper, &deeper, &queue,
                                    &queue, &pairs, &memo, &memo, &groups, &calls, &calls, &cells, &rows, &rows,
                                    &stacked, &letters, &letters, &joins, &ends, &ends, &extents, &ways};
  const Kit *kit = PICK(g, kits);
  const Var *f = gen_pick_var(g, FLOAT, true);
  int number = g->next_name++;
  if (g->loop_depth > 1 || g->bare) {
    gen_put(g, "let u%d = 0", number);
    return;
  }
  for (int i = 0; i < BEFORE && kit->before[i]; i++) put_form(g, kit->before[i], number), gen_line(g);
  bool guarded = gen_chance(g, kit->guarded);
  if (guarded) gen_put(g, "try { ");
  put_form(g, one_of(g, kit->heads, HEADS), number);
  for (int n = 1 + gen_below(g, 5); n > 0; n--) gen_put(g, "; "), put_form(g, one_of(g, kit->uses, USES), number);
  gen_put(g, " }");
  if (kit == &ends) gen_put(g, " }"); /* of its `try` */
  else if (guarded) gen_put(g, " } catch e { print(e.message, e.trace) }");
  if (kit != &ends) gen_line(g);
  put_form(g, kit->after, number);
  if (f && gen_chance(g, 50)) gen_line(g), gen_put(g, "%s += s%d * 0.125", f->name, number);
}
