/* graph_parse_exit.c — the parts of a graph's text that speak of sources and exits (see graph.h for the form). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/reasons.h"
#include "tracer/graph/graph_parse.h"

/* ---- sources, symbols, inputs ----------------------------------------------------------------------- */

SourceId read_source(Parser *p) {
  Graph *g = p->g;
  GuardSet *set = &g->guards;
  static const struct {
    const char *name;
    SourceKind kind;
    bool indexed;
  } steps[] = {{"size", SRC_size, true}, {"capture", SRC_capture, true}, {"len", SRC_len, false},
               {"total", SRC_total, false}, {"column", SRC_column, true},
               {"value", SRC_value, false}, {"start", SRC_start, false},    {"stop", SRC_stop, false},
               {"step", SRC_step, false},  {"inner", SRC_inner, false},    {"settings", SRC_settings, false}};
  static const struct {
    const char *name;
    SourceKind kind;
  } roots[] = {{"arg", SRC_arg}, {"reg", SRC_reg}, {"capture", SRC_capture0}, {"host", SRC_host}};
  enum { DEPTH = 64 };
  u32 open[DEPTH], nopen = 0;
  SourceId at = 0;
  while (!p->bad && !at) {
    const char *s;
    u32 n = read_any_word(p, &s), letters = 0;
    bool step = false;
    for (u32 i = 0; i < COUNT_OF(steps) && !p->bad && !step; i++)
      if (read_is(s, n, steps[i].name) && read_peek(p) == '(') {
        if (nopen == DEPTH) read_fail(p, "the source is too deep");
        else open[nopen++] = i;
        p->at++;
        step = true;
      }
    if (step || p->bad) continue;
    if (read_is(s, n, "ambient")) at = source_root(set, SRC_ambient, 0);
    else if (read_is(s, n, "global")) {
      u32 len, slot = 0;
      char *name = read_quoted(p, &len), label[96];
      if (!name) return 0;
      snprintf(label, sizeof label, "global \"%.72s\"", name);
      for (u32 i = 1; i < set->sources.items.count; i++) {
        const Source *o = &set->sources.items.data[i];
        if (o->kind != SRC_global) continue;
        if (strcmp(o->label, label) == 0) at = i;
        slot++;
      }
      if (!at) at = source_global(set, NULL, slot, name);
    } else {
      while (letters < n && !read_digit(s[letters])) letters++;
      for (u32 i = 0; i < COUNT_OF(roots); i++)
        if (read_is(s, letters, roots[i].name) && letters < n)
          at = source_root(set, roots[i].kind, (u32)strtoul(s + letters, NULL, 10));
    }
    if (!at) read_fail(p, "expected a source");
  }
  for (;;) {
    const char *s;
    u32 n;
    if (p->bad || !at) return 0;
    /* steps follow without a blank, so that `]` of a journal is not taken for one */
    if (p->at < p->end && *p->at == '.') {
      p->at++;
      n = read_any_word(p, &s);
      char *name = read_temp_copy(p, s, n);
      if (!name || !p->names) {
        read_fail(p, "fields need a table of names");
        return 0;
      }
      at = source_step(set, at, SRC_field, name_intern(p->names, s, n), name);
    } else if (p->at < p->end && *p->at == '[') {
      p->at++;
      if (read_peek(p) == '"') {
        char *name = read_quoted(p, &n);
        if (!name || !p->names) {
          read_fail(p, "fields need a table of names");
          return 0;
        }
        at = source_step(set, at, SRC_field, name_intern(p->names, name, n), name);
      } else {
        at = source_step(set, at, SRC_item, read_number(p), NULL);
      }
      read_expect(p, "]");
    } else if (nopen) {
      u32 i = open[--nopen], index = 0;
      if (steps[i].indexed && read_expect(p, ",")) index = read_number(p);
      read_expect(p, ")");
      if (!p->bad) at = source_step(set, at, steps[i].kind, index, NULL);
    } else {
      return at;
    }
    if (!at) read_checked(p, false, "out of memory");
  }
}

/* ---- exits ----------------------------------------------------------------------------------------- */

static RecipeId recipe(Parser *p, u32 depth);

static RecipeId recipe_list_of(Parser *p, u32 depth, u8 kind, u32 a, u32 b) {
  ExitTable *t = &p->g->exits;
  Ids items = {0};
  VEC(Name) keys = {0};
  RecipeId r = 0;
  read_expect(p, "(");
  while (!p->bad && !read_take(p, ")")) {
    if (items.count) read_expect(p, ",");
    if (kind == RCP_record) {
      u32 n;
      const char *s = NULL;
      if (read_peek(p) == '"') s = read_quoted(p, &n);
      else n = read_any_word(p, &s);
      if (p->bad || !p->names) {
        read_fail(p, "keys need a table of names");
        break;
      }
      if (!vec_push(p->g->alloc, &keys, name_intern(p->names, s, n))) p->g->failed = p->bad = true;
      read_expect(p, ":");
    }
    read_push_id(p, &items, recipe(p, depth + 1));
  }
  if (!p->bad) switch (kind) {
      case RCP_list: r = recipe_list(t, items.data, items.count); break;
      case RCP_record: r = recipe_record(t, keys.data, items.data, items.count); break;
      case RCP_range: r = items.count == 3 ? recipe_range(t, items.data[0], items.data[1], items.data[2]) : 0; break;
      case RCP_text:
        r = a == TEXT_joined || items.count == (a == TEXT_part ? 3u : a == TEXT_formatted ? 2u : 1u)
                ? recipe_text(t, a, items.data, items.count)
                : 0;
        break;
      case RCP_weak: r = items.count >= 2 ? recipe_weak_all(t, items.data, items.count) : 0; break;
      case RCP_option: r = items.count == 2 ? recipe_option(t, items.data[0], items.data[1]) : 0; break;
      case RCP_zip: r = items.count == 1 ? recipe_zip(t, items.data[0]) : 0; break;
      case RCP_item: r = items.count == 2 ? recipe_item(t, items.data[0], items.data[1]) : 0; break;
      case RCP_split: r = items.count == 3 ? recipe_split(t, items.data) : 0; break;
      case RCP_keyed: r = items.count == 2 ? recipe_keyed(t, items.data) : 0; break;
      case RCP_ref: r = items.count == 1 ? recipe_ref(t, items.data[0]) : 0; break;
      case RCP_fn:
        r = a ? recipe_group_fn(t, NULL, b, items.data, items.count) : recipe_fn(t, NULL, items.data, items.count);
        break;
      default: r = items.count == 2 ? recipe_transform(t, a, items.data[0], items.data[1]) : 0; break;
    }
  vec_free(p->g->alloc, &items);
  vec_free(p->g->alloc, &keys);
  if (!r) read_checked(p, !p->bad && t->failed, "the recipe cannot be made");
  return r;
}

static RecipeId recipe(Parser *p, u32 depth) {
  ExitTable *t = &p->g->exits;
  RecipeId r = 0;
  char c = read_peek(p);
  if (depth > RECIPE_MAX_DEPTH + 1) {
    read_fail(p, "the recipe is too deep");
    return 0;
  }
  if (c == '=') {
    p->at++;
    r = recipe_source(t, read_source(p));
  } else if (c == '#') {
    p->at++;
    r = recipe_arg(t, read_number(p));
  } else if (c == '%' || c == '!') {
    r = recipe_value(t, read_value(p, true));
  } else if (c == '<') {
    Dim d = read_dim(p);
    r = p->bad ? 0 : recipe_size(t, d);
  } else if (c == '"') {
    u32 n;
    char *s = read_quoted(p, &n);
    if (s) r = recipe_exit_const(t, (ExitConst){.kind = V_TEXT, .len = n, .text = s});
  } else if (c == '_') {
    p->at++;
    r = recipe_exit_const(t, (ExitConst){.kind = V_HOLE});
  } else if (read_take_word(p, "nil")) {
    r = recipe_exit_const(t, (ExitConst){.kind = V_NIL});
  } else if (read_take_word(p, "list")) {
    return recipe_list_of(p, depth, RCP_list, 0, 0);
  } else if (read_take_word(p, "record")) {
    return recipe_list_of(p, depth, RCP_record, 0, 0);
  } else if (read_take_word(p, "range")) {
    return recipe_list_of(p, depth, RCP_range, 0, 0);
  } else if (read_take_word(p, "text")) {
    return recipe_list_of(p, depth, RCP_text, TEXT_formatted, 0);
  } else if (read_take_word(p, "join")) {
    return recipe_list_of(p, depth, RCP_text, TEXT_joined, 0);
  } else if (read_take_word(p, "char")) {
    return recipe_list_of(p, depth, RCP_text, TEXT_character, 0);
  } else if (read_take_word(p, "points")) {
    return recipe_list_of(p, depth, RCP_text, TEXT_points, 0);
  } else if (read_take_word(p, "name")) {
    return recipe_list_of(p, depth, RCP_text, TEXT_numbered, 0);
  } else if (read_take_word(p, "part")) {
    return recipe_list_of(p, depth, RCP_text, TEXT_part, 0);
  } else if (read_take_word(p, "back")) {
    return recipe_list_of(p, depth, RCP_text, TEXT_reversed, 0);
  } else if (read_take_word(p, "zip")) {
    return recipe_list_of(p, depth, RCP_zip, 0, 0);
  } else if (read_take_word(p, "weak")) {
    return recipe_list_of(p, depth, RCP_weak, 0, 0);
  } else if (read_take_word(p, "option")) {
    return recipe_list_of(p, depth, RCP_option, 0, 0);
  } else if (read_take_word(p, "item")) {
    return recipe_list_of(p, depth, RCP_item, 0, 0);
  } else if (read_take_word(p, "keyed")) {
    return recipe_list_of(p, depth, RCP_keyed, 0, 0);
  } else if (read_take_word(p, "split")) {
    return recipe_list_of(p, depth, RCP_split, 0, 0);
  } else if (read_take_word(p, "ref")) {
    return recipe_list_of(p, depth, RCP_ref, 0, 0);
  } else if (read_take_word(p, "fn")) {
    return recipe_list_of(p, depth, RCP_fn, 0, 0);
  } else if (read_take_word(p, "group")) {
    u32 member = read_number(p);
    return recipe_list_of(p, depth, RCP_fn, 1, member);
  } else if (read_take_word(p, "transform")) {
    static const char *const names[TF_COUNT] = {
        [TF_grad] = "grad",     [TF_value_and_grad] = "value_and_grad", [TF_vmap] = "vmap",
        [TF_jit] = "jit",       [TF_eager] = "eager",                   [TF_checkpoint] = "checkpoint",
        [TF_custom_vjp] = "custom_vjp", [TF_pullback] = "pullback",     [TF_jacfwd] = "jacfwd",
        [TF_jacrev] = "jacrev", [TF_hessian] = "hessian",                [TF_strict] = "strict",
    };
    u32 k = 0;
    while (k < TF_COUNT && !(names[k] && read_take_word(p, names[k]))) k++;
    if (k == TF_COUNT) read_fail(p, "no such transform");
    return p->bad ? 0 : recipe_list_of(p, depth, RCP_transform, k, 0);
  } else if (read_take_word(p, "dtype")) {
    r = recipe_exit_const(t, (ExitConst){.kind = V_DTYPE, .dtype = (u8)read_dtype_at(p)});
  } else if (read_take_word(p, "builtin")) {
    const char *s;
    u32 n = read_any_word(p, &s);
    while (!p->bad && p->at < p->end && *p->at == '.') {
      const char *more;
      p->at++;
      n = (u32)(p->at - s) + read_word_at(p, &more);
      p->at = s + n;
    }
    u32 op = p->bad ? 0 : op_by_name(s, n);
    if (!op) read_fail(p, "no such operation");
    else r = recipe_exit_const(t, (ExitConst){.kind = V_FN, .bits = op});
  } else if (read_take_word(p, "items")) {
    ItemForm form = read_take_word(p, "weak") ? ITEMS_weak : read_take_word(p, "name") ? ITEMS_texts : ITEMS_strong;
    ValueId v = read_value(p, true);
    RecipeId count = read_take_word(p, "count") ? recipe(p, depth + 1) : 0;
    RecipeId before = read_take_word(p, "after") ? recipe(p, depth + 1) : 0;
    r = p->bad ? 0 : recipe_items(t, v, before, count, form);
  } else if (read_take_word(p, "complex")) {
    bool weak = read_take_word(p, "weak");
    ValueId re = read_value(p, true), im = p->bad ? 0 : read_value(p, true);
    r = p->bad ? 0 : recipe_complex(t, re, im, weak);
  } else if (read_symbol_at(p)) {
    r = recipe_value(t, read_value(p, true));
  } else {
    Value v = read_literal(p);
    if (!p->bad) r = recipe_const(t, v);
  }
  if (!r) read_checked(p, !p->bad && t->failed, "expected a recipe");
  return r;
}

RecipeId read_recipe(Parser *p) { return recipe(p, 0); }

static void exit_frames(Parser *p, u32 e, ExitKind kind) {
  Graph *g = p->g;
  read_expect(p, "{");
  for (u32 i = 0; !p->bad && !read_take(p, "}"); i++) {
    const char *s = p->at;
    u32 frame = 0, pc = 0, result = 0, flags = 0, tail_calls = 0;
    RecipeId self = 0;
    if (i) read_expect(p, "|");
    read_skip(p);
    s = p->at;
    while (p->at < p->end && *p->at != ':' && *p->at != '/' && *p->at != ' ' && *p->at != '\n') p->at++;
    if (p->at == s) read_fail(p, "expected a frame");
    if (p->at < p->end && *p->at == '/') {
      p->at++;
      frame = read_number(p);
    }
    if (kind != EXIT_return && read_take_word(p, "pc")) pc = read_number(p);
    if (read_take(p, "->") && read_expect(p, "r")) result = read_number(p);
    if (read_take_word(p, "flags")) flags = read_number(p);
    if (read_take_word(p, "tail")) tail_calls = read_number(p);
    if (read_take_word(p, "self")) self = recipe(p, 0);
    read_expect(p, ":");
    if (p->bad) return;
    if (frame >= g->frames.count) {
      read_fail(p, "no such frame");
      return;
    }
    if (!exit_frame(&g->exits, e, frame, pc, (u16)result, (u16)flags, tail_calls, self))
      read_checked(p, false, "out of memory");
    for (u32 k = 0; !p->bad && read_peek(p) != '}' && read_peek(p) != '|'; k++) {
      u32 reg = REG_RESULT;
      if (k) read_expect(p, ",");
      if (!read_take_word(p, "ret")) {
        read_expect(p, "r");
        reg = read_number(p);
      }
      read_expect(p, "=");
      RecipeId r = p->bad ? 0 : recipe(p, 0);
      if (r && !exit_reg(&g->exits, e, (u16)reg, r)) read_checked(p, false, "out of memory");
    }
  }
}

void read_exit(Parser *p) {
  static const char *const kinds[EXIT_KIND_COUNT] = {"return", "break", "check", "cold", "limit"};
  Graph *g = p->g;
  const char *s;
  u32 e = read_number(p), k = 0, why = 0;
  if (e != g->exits.exits.count) read_fail(p, "exits are numbered from 0");
  while (k < EXIT_KIND_COUNT && !read_take_word(p, kinds[k])) k++;
  if (k == EXIT_KIND_COUNT) read_fail(p, "expected the kind of the exit");
  u32 n = p->bad ? 0 : read_word_at(p, &s);
  if (n) {
    int id = k != EXIT_check ? reason_by_name(s, n) : n == 4 && memcmp(s, "none", 4) == 0 ? (int)CHECK_none
                             : check_by_name(s, n);
    if (id < 0) read_fail(p, "no such reason");
    else why = (u32)id;
    p->at = s + n;
  }
  if (p->bad) return;
  if (exit_begin(&g->exits, (ExitKind)k, why, 0, (Span){0}) == NO_EXIT) read_checked(p, false, "out of memory");
  exit_frames(p, e, (ExitKind)k);
  if (!read_take_word(p, "write")) return;
  read_expect(p, "[");
  JournalId journal = 0;
  for (u32 i = 0; !p->bad && !read_take(p, "]"); i++) {
    if (i) read_expect(p, ",");
    SourceId target = 0;
    RecipeId ref = 0;
    if (read_take(p, "=")) target = read_source(p);
    else ref = recipe(p, 0);
    read_expect(p, ":");
    RecipeId v = p->bad ? 0 : recipe(p, 0);
    if (!p->bad && !(journal = journal_write(&g->exits, journal, target, ref, v)))
      read_checked(p, false, "out of memory");
  }
  g->exits.exits.data[e].journal = journal;
}
