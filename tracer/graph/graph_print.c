/* graph_print.c — the graph as text (see graph.h for the form). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lang/reasons.h"
#include "tracer/graph/graph.h"

typedef struct Printer {
  const Graph *g;
  const Sources *sources;
  const u32 *number; /* NULL: by id */
  Buf *out;
  u32 indent;
} Printer;

static const char *const attr_kinds[ATTR_COUNT] = {
#define ATTR(name, meaning) #name,
#include "tracer/graph/graph.def"
};
static const char *const node_kinds[NODE_COUNT] = {
#define NODE(name, subs, meaning) #name,
#include "tracer/graph/graph.def"
};
static const char *const term_kinds[TERM_COUNT] = {
#define TERM(name, meaning) #name,
#include "tracer/graph/graph.def"
};

/* ---- numbers and sizes ----------------------------------------------------------------------------- */

static void put_float(Buf *out, f64 x, u32 dtype) {
  char text[40];
  if (x != x) {
    buf_puts(out, "nan");
    return;
  }
  if (isinf(x)) {
    buf_puts(out, x < 0 ? "-inf" : "inf");
    return;
  }
  for (int digits = 1; digits <= 17; digits++) { /* the shortest that reads back */
    snprintf(text, sizeof text, "%.*g", digits, x);
    f64 back;
    if (sscanf(text, "%lf", &back) == 1 && /* in the same locale */
        num_as_f64(num_convert_unchecked(value_f64(back), dtype)) == x)
      break;
  }
  number_point(text);
  buf_puts(out, text);
  if (!strpbrk(text, ".e")) buf_puts(out, ".0");
}

static void put_number(Buf *out, u32 dtype, bool weak, u64 bits) {
  Value v = {.dtype = (u8)dtype, .bits = bits};
  switch (dtype_kind(dtype)) {
    case DK_BOOL: buf_puts(out, v.i ? "true" : "false"); break;
    case DK_FLOAT: put_float(out, num_as_f64(v), dtype); break;
    case DK_COMPLEX: buf_printf(out, "0x%llx", (unsigned long long)bits); break;
    default: buf_printf(out, dtype_is_signed(dtype) ? "%lld" : "%llu", (long long)v.i); break;
  }
  if (!weak || (dtype != DT_i64 && dtype != DT_f64 && dtype != DT_bool))
    buf_printf(out, weak ? ":weak %s" : ":%s", dtype_name(dtype));
}

/* A symbol or a constant stands alone, anything else in <>. */
static void put_dim(const Graph *g, Dim d, Buf *out) {
  u32 sym;
  i64 c;
  bool alone = size_is_sym(&g->sizes, d, &sym) || (size_is_const(&g->sizes, d, &c) && c >= 0);
  if (!alone) buf_putc(out, '<');
  size_print(&g->sizes, d, out);
  if (!alone) buf_putc(out, '>');
}

static void put_type(const Graph *g, TypeId id, Buf *out) {
  if (id == TYPE_TOKEN) {
    buf_putc(out, '!');
    return;
  }
  const ArrayType *t = type_of(g, id);
  if (!t) {
    buf_putc(out, '?');
    return;
  }
  buf_printf(out, "%s%s[", t->weak ? "weak " : "", dtype_name(t->dtype));
  for (u32 d = 0; d < t->rank; d++) {
    if (d) buf_puts(out, ", ");
    put_dim(g, t->dims[d], out);
  }
  buf_putc(out, ']');
  if (t->device) buf_printf(out, " on %u", t->device);
}

void type_print(const Graph *g, TypeId t, Buf *out) { put_type(g, t, out); }

static void put_value(const Printer *p, ValueId id) {
  const GraphValue *v = &p->g->values.data[id];
  const ArrayType *t = type_of(p->g, v->type);
  switch (v->origin) {
    case GV_const: put_number(p->out, t->dtype, t->weak, v->bits); return;
    case GV_size: {
      u32 sym;
      bool plain = t->weak && t->dtype == DT_i64;
      if (plain && size_is_sym(&p->g->sizes, v->dim, &sym)) {
        put_dim(p->g, v->dim, p->out);
        return;
      }
      buf_putc(p->out, '<');
      size_print(&p->g->sizes, v->dim, p->out);
      buf_putc(p->out, '>');
      if (!plain) buf_printf(p->out, t->weak ? ":weak %s" : ":%s", dtype_name(t->dtype));
      return;
    }
    default: buf_printf(p->out, "%c%u", v->type == TYPE_TOKEN ? '!' : '%', p->number ? p->number[id] : id);
  }
}

void value_print(const Graph *g, ValueId v, Buf *out) {
  Printer p = {.g = g, .out = out};
  put_value(&p, v);
}

static void put_quoted(Buf *out, const char *s, u32 len) {
  buf_putc(out, '"');
  for (u32 i = 0; i < len; i++) {
    char c = s[i];
    if (c == '"' || c == '\\') buf_printf(out, "\\%c", c);
    else if (c == '\n') buf_puts(out, "\\n");
    else if ((u8)c < 32) buf_printf(out, "\\x%02x", (u8)c);
    else buf_putc(out, c);
  }
  buf_putc(out, '"');
}

/* ---- nodes ----------------------------------------------------------------------------------------- */

static void put_attr(const Printer *p, const GraphAttr *a) {
  Buf *out = p->out;
  switch (a->kind) {
    case ATTR_hole: buf_putc(out, '_'); return;
    case ATTR_nil: buf_puts(out, "nil"); return;
    case ATTR_bool: buf_puts(out, a->i ? "true" : "false"); return;
    case ATTR_int: buf_printf(out, "%lld", (long long)a->i); return;
    case ATTR_float: put_float(out, a->f, DT_f64); return;
    case ATTR_dtype: buf_puts(out, dtype_name((u32)a->i)); return;
    case ATTR_text: put_quoted(out, a->text, a->count); return;
    case ATTR_list: buf_printf(out, "*%u", a->count); return;
    case ATTR_dim:
      buf_putc(out, '<');
      size_print(&p->g->sizes, a->dim, out);
      buf_putc(out, '>');
      return;
    case ATTR_ints:
      buf_putc(out, '[');
      for (u32 i = 0; i < a->count; i++) {
        if (i) buf_puts(out, ", ");
        if (a->pairs && i % 2 == 0) buf_putc(out, '(');
        buf_printf(out, "%lld", (long long)a->ints[i]);
        if (a->pairs && i % 2 == 1) buf_putc(out, ')');
      }
      buf_putc(out, ']');
      return;
    case ATTR_dims:
      buf_putc(out, '(');
      for (u32 i = 0; i < a->count; i++) {
        if (i) buf_puts(out, ", ");
        if (a->ints[i] == DIM_INFER) buf_puts(out, "-1");
        else put_dim(p->g, a->ints[i], out);
      }
      buf_putc(out, ')');
      return;
    default: buf_puts(out, attr_kinds[a->kind < ATTR_COUNT ? a->kind : 0]);
  }
}

static void put_part(const Printer *p, const GraphNode *x, const IndexItem *it, u32 i) {
  if (it->part[i] == PART_dim) {
    i64 c;
    if (size_is_const(&p->g->sizes, it->at[i], &c)) buf_printf(p->out, "%lld", (long long)c);
    else put_dim(p->g, it->at[i], p->out);
  } else if (it->part[i] == PART_operand && it->at[i] >= 0 && it->at[i] < x->operand_count) {
    put_value(p, p->g->operands.data[x->operand_first + it->at[i]]);
  }
}

static void put_index(const Printer *p, const GraphNode *x) {
  const GraphAttr *a = x->attr_count ? &p->g->attrs.data[x->attr_first] : NULL;
  Buf *out = p->out;
  buf_putc(out, '[');
  for (u32 i = 0; a && a->kind == ATTR_index && i < a->count; i++) {
    const IndexItem *it = &a->items[i];
    if (i) buf_puts(out, ", ");
    switch (it->kind) {
      case INDEX_newaxis: buf_puts(out, "nil"); break;
      case INDEX_ellipsis: buf_puts(out, "..."); break;
      case INDEX_array: buf_putc(out, '@'); put_part(p, x, it, 0); break;
      case INDEX_mask: buf_putc(out, '?'); put_part(p, x, it, 0); break;
      case INDEX_slice:
        put_part(p, x, it, 0);
        buf_putc(out, ':');
        put_part(p, x, it, 1);
        if (it->part[2] != PART_none) {
          buf_putc(out, ':');
          put_part(p, x, it, 2);
        }
        break;
      default: put_part(p, x, it, 0);
    }
  }
  buf_putc(out, ']');
}

static void put_group(const Printer *p, const GraphNode *x, u32 from, u32 count) {
  buf_puts(p->out, " (");
  for (u32 i = 0; i < count; i++) {
    if (i) buf_putc(p->out, ' ');
    put_value(p, p->g->operands.data[x->operand_first + from + i]);
  }
  buf_putc(p->out, ')');
}

static void put_span(const Printer *p, OriginId id) {
  const GraphOrigin *o = &p->g->origins.data[id];
  u32 line, col;
  if (!id) return;
  if (o->span.file == 0 && o->span.start && o->span.len) buf_printf(p->out, "  @%u:%u", o->span.start, o->span.len);
  if (p->sources && sources_get(p->sources, o->span.file)) {
    sources_locate(p->sources, o->span, &line, &col);
    buf_printf(p->out, "  @%u:%u", line, col);
  }
}

static const char *const sub_names[NODE_COUNT][3] = {
    [NODE_cond] = {"then", "else"},  [NODE_while] = {"cond", "body"},         [NODE_scan] = {"body"},
    [NODE_ascan] = {"body"},         [NODE_custom] = {"f", "fwd", "bwd"}, [NODE_checkpoint] = {"body"},
    [NODE_recur] = {"body"},
};

static void put_recipe(const Printer *p, RecipeId id);

/* The line up to where blocks begin. */
static void put_head(const Printer *p, NodeId n) {
  const Graph *g = p->g;
  const GraphNode *x = &g->nodes.data[n];
  Buf *out = p->out;
  u32 first, captures = node_captures(g, n, &first), from = 0;
  for (u32 i = 0; i < x->result_count; i++) {
    put_value(p, x->result_first + i);
    buf_putc(out, ' ');
  }
  if (x->result_count) buf_puts(out, "= ");
  switch (x->kind) {
    case NODE_op: buf_puts(out, op_name(x->op)); break;
    case NODE_check: buf_printf(out, "check %s", check_name(x->op)); break;
    case NODE_host:
    case NODE_hook:
      buf_printf(out, "%s ", node_kinds[x->kind]);
      put_quoted(out, g->hosts.data[x->host].name, (u32)strlen(g->hosts.data[x->host].name));
      if (g->hosts.data[x->host].kind)
        buf_printf(out, " %s", g->hosts.data[x->host].kind == HOST_print ? "print" : "settle");
      if (g->hosts.data[x->host].fn) {
        buf_puts(out, " calls ");
        put_recipe(p, g->hosts.data[x->host].fn);
      }
      if (g->hosts.data[x->host].args) {
        buf_puts(out, " with ");
        put_recipe(p, g->hosts.data[x->host].args);
      }
      break;
    case NODE_call: buf_printf(out, "call @%s", g->blocks.data[x->sub[0]].name); break;
    default: buf_puts(out, node_kinds[x->kind]);
  }
  switch (x->kind) {
    case NODE_index:
    case NODE_update:
      buf_putc(out, ' ');
      put_value(p, g->operands.data[x->operand_first]);
      put_index(p, x);
      if (x->kind == NODE_update) {
        buf_printf(out, " %s ", x->op ? op_name(x->op) : "set");
        put_value(p, g->operands.data[x->operand_first + x->operand_count - 1]);
      }
      return;
    case NODE_cond:
      buf_putc(out, ' ');
      put_value(p, g->operands.data[x->operand_first]);
      from = 1;
      break;
    case NODE_while:
      put_group(p, x, 0, x->carried);
      from = x->carried;
      break;
    case NODE_scan:
      put_group(p, x, 0, x->carried);
      put_group(p, x, x->carried, x->xs);
      from = x->carried + x->xs;
      break;
    case NODE_ascan:
    case NODE_custom:
    case NODE_checkpoint:
    case NODE_recur:
      put_group(p, x, 0, x->xs);
      from = x->xs;
      break;
    case NODE_call: put_group(p, x, 0, x->operand_count); return;
    default: break;
  }
  if (node_subs(g, n)) {
    put_group(p, x, from, captures);
    if (x->kind == NODE_scan) {
      buf_puts(out, " length ");
      put_dim(g, x->length, out);
      if (x->index) buf_puts(out, " index");
    }
    if (x->reverse) buf_puts(out, " reverse");
    return;
  }
  for (u32 i = 0; i < x->operand_count; i++) {
    buf_putc(out, ' ');
    put_value(p, g->operands.data[x->operand_first + i]);
  }
  if (x->attr_count && x->kind == NODE_op) {
    buf_puts(out, " {");
    for (u32 i = 0; i < x->attr_count; i++) {
      const GraphAttr *a = &g->attrs.data[x->attr_first + i];
      const OpParam *param = &op_info(x->op)->params[a->param];
      buf_printf(out, "%s%.*s=", i ? ", " : "", (int)param->len, param->name);
      put_attr(p, a);
    }
    buf_putc(out, '}');
  }
}

static void put_tail(const Printer *p, NodeId n) {
  const GraphNode *x = &p->g->nodes.data[n];
  if (x->exit != NO_EXIT) buf_printf(p->out, " -> %u", x->exit);
  if (x->result_count) buf_puts(p->out, " :");
  for (u32 i = 0; i < x->result_count; i++) {
    buf_putc(p->out, ' ');
    put_type(p->g, p->g->values.data[x->result_first + i].type, p->out);
  }
  put_span(p, x->origin);
}

const char *node_kind_name(u32 kind) { return kind < NODE_COUNT ? node_kinds[kind] : ""; }

void node_print(const Graph *g, NodeId n, Buf *out) {
  Printer p = {.g = g, .out = out};
  put_head(&p, n);
  put_tail(&p, n);
}

static void put_indent(const Printer *p) {
  for (u32 i = 0; i < p->indent; i++) buf_puts(p->out, "  ");
}

/* ---- blocks ---------------------------------------------------------------------------------------- */

static void put_params(const Printer *p, BlockId id) {
  const GraphBlock *b = &p->g->blocks.data[id];
  buf_putc(p->out, '(');
  for (u32 i = 0; i < b->captures.count + b->params.count; i++) {
    ValueId v = i < b->captures.count ? b->captures.data[i].inner : b->params.data[i - b->captures.count];
    if (i) buf_puts(p->out, ", ");
    put_value(p, v);
    if (p->g->values.data[v].type != TYPE_TOKEN) {
      buf_puts(p->out, ": ");
      put_type(p->g, p->g->values.data[v].type, p->out);
    }
  }
  buf_putc(p->out, ')');
}

static void put_nodes(Printer *p, BlockId id);

static void put_term(Printer *p, const GraphBlock *b) {
  if (b->term == TERM_none) return;
  put_indent(p);
  buf_puts(p->out, term_kinds[b->term]);
  if (b->term == TERM_exit) buf_printf(p->out, " %u", b->exit);
  for (u32 i = 0; i < b->term_count; i++) {
    buf_putc(p->out, ' ');
    put_value(p, p->g->operands.data[b->term_first + i]);
  }
  buf_putc(p->out, '\n');
}

/* Depth is bounded by GRAPH_MAX_DEPTH. */
static void put_nodes(Printer *p, BlockId id) {
  const Graph *g = p->g;
  for (NodeId n = g->blocks.data[id].first; n; n = g->nodes.data[n].next) {
    const GraphNode *x = &g->nodes.data[n];
    put_indent(p);
    put_head(p, n);
    if (node_subs(g, n) && x->kind != NODE_call) {
      buf_puts(p->out, " {\n");
      for (u32 s = 0; s < node_subs(g, n); s++) {
        p->indent++;
        put_indent(p);
        buf_printf(p->out, "%s ", sub_names[x->kind][s]);
        put_params(p, x->sub[s]);
        buf_puts(p->out, " {\n");
        p->indent++;
        put_nodes(p, x->sub[s]);
        put_term(p, &g->blocks.data[x->sub[s]]);
        p->indent--;
        put_indent(p);
        buf_puts(p->out, "}\n");
        p->indent--;
      }
      put_indent(p);
      buf_putc(p->out, '}');
    }
    put_tail(p, n);
    buf_putc(p->out, '\n');
  }
}

/* ---- exits ----------------------------------------------------------------------------------------- */

static void put_key(const Printer *p, Name key) {
  const char *s = p->g->names && key < p->g->names->count ? name_text(p->g->names, key) : "?";
  bool plain = *s && !(*s >= '0' && *s <= '9');
  for (const char *c = s; plain && *c; c++)
    plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_';
  if (plain) buf_puts(p->out, s);
  else put_quoted(p->out, s, (u32)strlen(s));
}


static void put_items(const Printer *p, const Recipe *r, const char *name) {
  buf_printf(p->out, "%s(", name);
  for (u32 i = 0; i < r->count; i++) {
    if (i) buf_puts(p->out, ", ");
    if (r->kind == RCP_record) {
      put_key(p, p->g->exits.names.data[r->key_first + i]);
      buf_puts(p->out, ": ");
    }
    put_recipe(p, p->g->exits.ids.data[r->first + i]);
  }
  buf_putc(p->out, ')');
}

static const char *const transforms[TF_COUNT] = {
    [TF_grad] = "grad",     [TF_value_and_grad] = "value_and_grad", [TF_vmap] = "vmap",
    [TF_jit] = "jit",       [TF_eager] = "eager",                   [TF_checkpoint] = "checkpoint",
    [TF_custom_vjp] = "custom_vjp", [TF_pullback] = "pullback",     [TF_jacfwd] = "jacfwd",
    [TF_jacrev] = "jacrev", [TF_hessian] = "hessian",                [TF_strict] = "strict",
};

static const char *const text_forms[] = {
    [TEXT_formatted] = "text", [TEXT_joined] = "join", [TEXT_character] = "char", [TEXT_points] = "points",
    [TEXT_numbered] = "name",  [TEXT_part] = "part",   [TEXT_reversed] = "back",
};

/* Depth is bounded by RECIPE_MAX_DEPTH. */
static void put_recipe(const Printer *p, RecipeId id) {
  const ExitTable *t = &p->g->exits;
  const Recipe *r = &t->recipes.data[id];
  Buf *out = p->out;
  char name[64];
  switch (id ? r->kind : RCP_none) {
    case RCP_const: {
      const ExitConst *c = &t->consts.data[r->constant];
      switch (c->kind) {
        case V_NIL: buf_puts(out, "nil"); break;
        case V_NUM: put_number(out, c->dtype, c->weak, c->bits); break;
        case V_TEXT: put_quoted(out, c->text, c->len); break;
        case V_DTYPE: buf_printf(out, "dtype %s", dtype_name(c->dtype)); break;
        case V_FN: buf_printf(out, "builtin %s", op_name((u32)c->bits)); break;
        default: buf_putc(out, '_');
      }
      return;
    }
    case RCP_value: put_value(p, r->a); return;
    case RCP_complex:
      buf_puts(out, r->constant ? "complex weak " : "complex ");
      put_value(p, r->a);
      buf_putc(out, ' ');
      put_value(p, r->b);
      return;
    case RCP_arg: buf_printf(out, "#%u", r->a); return;
    case RCP_size:
      buf_putc(out, '<');
      size_print(&p->g->sizes, r->dim, out);
      buf_putc(out, '>');
      return;
    case RCP_source:
      buf_putc(out, '=');
      source_print(&p->g->guards, r->a, out);
      return;
    case RCP_list: put_items(p, r, "list"); return;
    case RCP_record: put_items(p, r, "record"); return;
    case RCP_range: put_items(p, r, "range"); return;
    case RCP_text: put_items(p, r, text_forms[r->a]); return;
    case RCP_zip: put_items(p, r, "zip"); return;
    case RCP_split: put_items(p, r, "split"); return;
    case RCP_keyed: put_items(p, r, "keyed"); return;
    case RCP_item: put_items(p, r, "item"); return;
    case RCP_ref: put_items(p, r, "ref"); return;
    case RCP_weak: put_items(p, r, "weak"); return;
    case RCP_option: put_items(p, r, "option"); return;
    case RCP_fn:
      snprintf(name, sizeof name, r->a ? "group %u " : "fn ", r->b);
      put_items(p, r, name);
      return;
    case RCP_transform:
      snprintf(name, sizeof name, "transform %s ", r->a < TF_COUNT && transforms[r->a] ? transforms[r->a] : "?");
      put_items(p, r, name);
      return;
    case RCP_items:
      buf_puts(out, r->constant == ITEMS_texts ? "items name " : r->constant ? "items weak " : "items ");
      put_value(p, r->a);
      if (r->count) {
        buf_puts(out, " count ");
        put_recipe(p, p->g->exits.ids.data[r->first]);
      }
      if (r->b) {
        buf_puts(out, " after ");
        put_recipe(p, r->b);
      }
      return;
    default: buf_putc(out, '?');
  }
}

static void put_exit(const Printer *p, u32 e) {
  static const char *const kinds[EXIT_KIND_COUNT] = {"return", "break", "check", "cold", "limit"};
  const ExitTable *t = &p->g->exits;
  const Exit *x = &t->exits.data[e];
  Buf *out = p->out;
  buf_printf(out, "exit %u %s", e, kinds[x->kind]);
  if (x->kind == EXIT_check) buf_printf(out, " %s", check_name(x->check));
  else if (x->kind != EXIT_return && x->reason) buf_printf(out, " %s", reason_name(x->reason));
  buf_puts(out, " {");
  for (u32 i = 0; i < x->frame_count; i++) {
    const ExitFrame *f = &t->frames.data[x->frame_first + i];
    buf_printf(out, i ? " | %s" : " %s", f->frame < p->g->frames.count ? p->g->frames.data[f->frame].name : "?");
    if (f->frame) buf_printf(out, "/%u", f->frame);
    if (x->kind != EXIT_return) buf_printf(out, " pc %u", f->pc);
    if (i) buf_printf(out, " -> r%u", f->result);
    if (f->flags) buf_printf(out, " flags %u", f->flags);
    if (f->tail_calls) buf_printf(out, " tail %u", f->tail_calls);
    if (f->self) {
      buf_puts(out, " self ");
      put_recipe(p, f->self);
    }
    buf_putc(out, ':');
    for (u32 k = 0; k < f->count; k++) {
      const ExitReg *r = &t->regs.data[f->first + k];
      if (r->reg == REG_RESULT) buf_printf(out, "%s ret = ", k ? "," : "");
      else buf_printf(out, "%s r%u = ", k ? "," : "", r->reg);
      put_recipe(p, r->recipe);
    }
  }
  buf_puts(out, " }");
  u32 depth = journal_depth(t, x->journal);
  if (depth) buf_puts(out, " write [");
  for (u32 i = 0; i < depth; i++) {
    JournalId j = x->journal;
    for (u32 k = i + 1; k < depth; k++) j = t->journal.data[j].parent;
    const JournalEntry *w = &t->journal.data[j];
    if (i) buf_puts(out, ", ");
    if (w->target) {
      buf_putc(out, '=');
      source_print(&p->g->guards, w->target, out);
    } else {
      put_recipe(p, w->ref);
    }
    buf_puts(out, ": ");
    put_recipe(p, w->value);
  }
  if (depth) buf_putc(out, ']');
  buf_putc(out, '\n');
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static void number_block(const Graph *g, BlockId b, u32 *number, u32 *next) {
  const GraphBlock *x = &g->blocks.data[b];
  for (u32 i = 0; i < x->captures.count; i++) number[x->captures.data[i].inner] = ++*next;
  for (u32 i = 0; i < x->params.count; i++) number[x->params.data[i]] = ++*next;
  for (NodeId n = x->first; n; n = g->nodes.data[n].next) {
    for (u32 i = 0; i < g->nodes.data[n].result_count; i++) number[g->nodes.data[n].result_first + i] = ++*next;
    if (g->nodes.data[n].kind != NODE_call)
      for (u32 s = 0; s < node_subs(g, n); s++) number_block(g, g->nodes.data[n].sub[s], number, next);
  }
}

static bool is_shared(const Graph *g, BlockId b) { return g->blocks.data[b].shared; }

bool graph_numbers(const Graph *g, Allocator *a, u32 **out) {
  u32 *blocks, count, next = 0;
  *out = mem_alloc_zero(a, sizeof **out * g->values.count);
  if (!*out) return false;
  if (!graph_blocks(g, a, &blocks, &count)) {
    mem_free(a, *out, sizeof **out * g->values.count);
    return false;
  }
  for (u32 i = count; i-- > 0;) /* shared blocks come first in the text, the innermost before its callers */
    if (is_shared(g, blocks[i])) number_block(g, blocks[i], *out, &next);
  number_block(g, 1, *out, &next);
  mem_free(a, blocks, sizeof *blocks * count);
  return true;
}

typedef struct OutList {
  Printer *p;
  u8 *seen;
} OutList;

static void put_out(void *ctx, u32 v) {
  OutList *o = ctx;
  u8 origin = o->p->g->values.data[v].origin;
  if (o->seen[v] || origin == GV_const || origin == GV_size) return;
  o->seen[v] = 1;
  buf_putc(o->p->out, ' ');
  put_value(o->p, v);
}

static void put_bound(Buf *out, i64 v, bool upper) {
  if (upper && v == INT64_MAX) buf_puts(out, "max");
  else if (!upper && v == INT64_MIN) buf_puts(out, "min");
  else buf_printf(out, "%lld", (long long)v);
}

static void put_symbol(const Printer *p, const SizeSym *s) {
  Buf *out = p->out;
  buf_printf(out, "sym %s", s->name);
  if (s->unbacked) {
    buf_puts(out, " = ");
    bool there = s->source < p->g->values.count && p->number[s->source],
        array = there && value_type(p->g, s->source)->rank > 0;
    if (array) buf_puts(out, "size(");
    if (there) put_value(p, s->source);
    else buf_putc(out, '?');
    if (array) buf_printf(out, ", %u)", s->axis);
  } else if (s->source && s->source < p->g->guards.sources.items.count) {
    buf_puts(out, " = ");
    source_print(&p->g->guards, s->source, out);
  }
  if (s->lo == 0 && s->hi == SIZE_LIMIT - 1) buf_puts(out, " in [0, 2^62)");
  else {
    buf_puts(out, " in [");
    put_bound(out, s->lo, false);
    buf_puts(out, ", ");
    put_bound(out, s->hi, true);
    buf_putc(out, ']');
  }
  if (s->same_as != DIM_NONE) {
    buf_puts(out, " same ");
    put_dim(p->g, s->same_as, out);
  }
  buf_putc(out, '\n');
}

void graph_print(const Graph *g, const Sources *sources, Buf *out) {
  u32 *blocks, count, *number;
  if (!graph_numbers(g, g->alloc, &number)) {
    out->failed = true;
    return;
  }
  if (!graph_blocks(g, g->alloc, &blocks, &count)) {
    mem_free(g->alloc, number, sizeof *number * g->values.count);
    out->failed = true;
    return;
  }
  Printer p = {.g = g, .sources = sources, .number = number, .out = out};
  buf_printf(out, "graph %s  file %u  ambient %llu\n", g->name, g->file, (unsigned long long)g->ambient);
  for (u32 i = 0; i < g->frames.count; i++) buf_printf(out, "frame %u %s\n", i, g->frames.data[i].name);
  for (u32 i = 0; i < g->sizes.syms.count; i++) put_symbol(&p, &g->sizes.syms.data[i]);
  for (u32 i = count; i-- > 0;) {
    if (!is_shared(g, blocks[i])) continue;
    buf_printf(out, "fn @%s ", g->blocks.data[blocks[i]].name);
    put_params(&p, blocks[i]);
    buf_puts(out, " {\n");
    p.indent = 1;
    put_nodes(&p, blocks[i]);
    put_term(&p, &g->blocks.data[blocks[i]]);
    p.indent = 0;
    buf_puts(out, "}\n");
  }
  for (u32 i = 0; i < g->inputs.count; i++) {
    const GraphInput *in = &g->inputs.data[i];
    buf_puts(out, "in ");
    put_value(&p, in->value);
    if (!value_is_token(g, in->value)) {
      buf_puts(out, ": ");
      put_type(g, g->values.data[in->value].type, out);
    }
    if (in->input != UINT32_MAX) {
      buf_puts(out, " = ");
      source_print(&g->guards, g->guards.inputs.data[in->input].source, out);
    }
    if (in->explicit_arg) buf_puts(out, " explicit");
    buf_putc(out, '\n');
  }
  put_nodes(&p, 1);
  const GraphBlock *root = &g->blocks.data[1];
  if (root->term == TERM_exit && root->exit < g->exits.exits.count) {
    OutList o = {&p, mem_alloc_zero(g->alloc, g->values.count)};
    buf_puts(out, "out");
    if (o.seen) exit_values(&g->exits, root->exit, put_out, &o);
    else out->failed = true;
    mem_free(g->alloc, o.seen, g->values.count);
    buf_printf(out, " -> %u\n", root->exit);
  } else {
    put_term(&p, root);
  }
  for (u32 e = 0; e < g->exits.exits.count; e++) put_exit(&p, e);
  if (g->entry_exit != NO_EXIT) buf_printf(out, "entry -> %u\n", g->entry_exit);
  mem_free(g->alloc, number, sizeof *number * g->values.count);
  mem_free(g->alloc, blocks, sizeof *blocks * count);
}
