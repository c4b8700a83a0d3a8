/* verify.c — proves that bytecode keeps the promises of bytecode.h; the only reader that trusts nothing.
 *
 *   tables (counts, names, kinds) → instructions (operands in range) → extents (nesting, jumps) → registers
 *
 * Each step relies on the ones before it. The last one runs values forward: a register may be read only where it was
 * written, and not moved out, on every path; edges into handlers included. */
#include "lang/compile.h"
#include "lang/flow.h"
#include "lang/ops.h"
#include "parser/ast.h"

#include <string.h>

typedef struct Verifier {
  const Proto *p;
  const Proto *parent;
  u32 slots, names, depth;
  Allocator *alloc;
  Buf *why;
  Toil *toil; /* when it ends, so does the proof: it fails */
} Verifier;

static bool wrong(const Verifier *v, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool wrong(const Verifier *v, const char *fmt, ...) {
  va_list ap;
  if (toil_ended(v->toil)) return false;
  va_start(ap, fmt);
  buf_vprintf(v->why, fmt, ap);
  va_end(ap);
  return false;
}

/* ---- tables ------------------------------------------------------------------------------------------- */

bool bytes_are_utf8(const char *s, u32 len) { return bytes_are_utf8_long(s, len, NULL); }

bool bytes_are_utf8_long(const char *s, u32 len, Toil *t) {
  u32 look = TOIL_BYTES;
  for (u32 i = 0; i < len;) {
    u8 c = (u8)s[i];
    if (UNLIKELY(i >= look)) {
      if (!toil(t, TOIL_BYTE_STEPS)) return false;
      look = i + TOIL_BYTES;
    }
    u32 n = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : (c & 0xF0) == 0xE0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (!n || n > len - i) return false;
    u32 code = n == 1 ? c : c & (0x7F >> n);
    for (u32 k = 1; k < n; k++) {
      if (((u8)s[i + k] & 0xC0) != 0x80) return false;
      code = code << 6 | ((u8)s[i + k] & 0x3F);
    }
    if ((n == 3 && code < 0x800) || (n == 4 && (code < 0x10000 || code > 0x10FFFF)) || (code >> 11) == 0x1B)
      return false;
    i += n;
  }
  return true;
}

static bool check_const(const Verifier *v, const Const *k) {
  switch (k->kind) {
  case CK_NIL: return k->i == 0;
  case CK_BOOL: return k->i == 0 || k->i == 1;
  case CK_INT: case CK_U64: case CK_FLOAT: case CK_IMAG: return true;
  case CK_TEXT: return k->text && bytes_are_utf8_long(k->text, k->len, v->toil);
  case CK_BUILTIN: return k->i > 0 && k->i < OP_COUNT;
  case CK_DTYPE: return k->i > 0 && k->i < DT_COUNT;
  case CK_MODULE: return k->i >= 0 && k->i < OP_MODULE_COUNT;
  default: return false;
  }
}

static bool check_names(const Verifier *v, const Name *names, u32 count) {
  for (u32 i = 0; i < count; i++)
    if (names[i] >= v->names) return false;
  return true;
}

static bool are_distinct(const Name *names, u32 count) {
  if (count > 1024) return false;
  for (u32 i = 0; i < count; i++)
    for (u32 j = 0; j < i; j++)
      if (names[i] == names[j]) return false;
  return true;
}

static bool check_items(const u8 *items, u32 count) {
  u64 registers = 0;
  for (u32 i = 0; i < count; i++) {
    if (items[i] > IX_ELLIPSIS) return false;
    registers += items[i] == IX_VALUE ? 1 : items[i] == IX_SLICE ? 3 : 0;
  }
  return registers < MAX_REGISTERS;
}

static bool check_path(const Verifier *v, const Desc *d) {
  if (d->root > ROOT_FIXED || (d->root == ROOT_MODULE && d->root_slot >= v->slots)) return false;
  if (d->op != BC_move && !(d->op >= BC_add && d->op <= BC_shr)) return false;
  if (!d->step_count && (d->root != ROOT_MODULE || d->op == BC_move)) return false;
  u32 item = 0;
  for (u32 i = 0; i < d->step_count; i++) {
    const PathStep *s = &d->steps[i];
    if (s->kind > STEP_INDEX || s->item_first != item || s->item_count > d->item_count - item) return false;
    if (s->kind == STEP_FIELD ? s->field >= v->names || s->item_count : !s->item_count) return false;
    item += s->item_count;
  }
  return item == d->item_count && check_items(d->items, d->item_count);
}

static bool check_annotation(const Verifier *v, const Desc *d) {
  if (d->type_name >= v->names || d->param >= v->names || d->dtype >= DT_COUNT || d->rank > MAX_REGISTERS) return false;
  if (!d->has_dims && d->rank) return false;
  if (!check_names(v, d->dim_names, d->rank)) return false;
  for (u32 i = 0; i < d->rank; i++) {
    if (d->dim_consts[i] < -2 || d->dim_binds[i] > 1 || (d->dim_binds[i] && d->dim_consts[i] != -1)) return false;
    if (d->dim_consts[i] == -1 && d->dim_regs[i] >= v->p->nregs) return false;
  }
  return true;
}

static bool check_desc(const Verifier *v, const Desc *d) {
  switch (d->kind) {
  case DESC_NAME: return d->name < v->names;
  case DESC_KEYS: return check_names(v, d->names, d->name_count) && are_distinct(d->names, d->name_count);
  case DESC_CALL:
    for (u32 i = 0; i < d->argc && d->argc < MAX_REGISTERS; i++)
      if (d->spread[i] > 1 || (d->spread[i] && d->names[i])) return false;
    return d->argc < MAX_REGISTERS && d->name_count == d->argc && check_names(v, d->names, d->argc);
  case DESC_INDEX: return d->item_count > 0 && check_items(d->items, d->item_count);
  case DESC_PATH: return check_path(v, d);
  case DESC_UNPACK:
    return d->before < MAX_REGISTERS && d->after < MAX_REGISTERS && d->name_count < MAX_REGISTERS &&
           (d->has_rest || !d->after) && check_names(v, d->names, d->name_count);
  case DESC_ANNOT: return check_annotation(v, d);
  default: return false;
  }
}

static bool check_params(const Verifier *v) {
  const Proto *p = v->p;
  bool rest = p->rest_index >= 0;
  if (p->nparams > p->nregs || p->npositional > p->nparams) return wrong(v, "more parameters than registers");
  if (rest ? (u32)p->rest_index != p->npositional || p->npositional >= p->nparams : p->npositional != p->nparams)
    return wrong(v, "the rest parameter is out of place");
  for (u32 i = 0; i < p->nparams; i++) {
    if (p->params[i].name >= v->names) return wrong(v, "parameter %u has no name", i);
    if (p->params[i].keyword_only != (rest && i > p->npositional)) return wrong(v, "parameter %u is out of order", i);
  }
  return true;
}

/* What a child captures must exist here, and be the same in its whole group. */
static bool check_child(const Verifier *v, u32 child) {
  const Proto *p = v->p, *k = p->protos[child];
  if (k->group_index >= k->group_size || k->group_index > child ||
      k->group_size > p->nprotos - (child - k->group_index))
    return wrong(v, "function %u is not in its group", child);
  for (u32 i = 0; i < k->ncaptures; i++) {
    const Capture *c = &k->captures[i];
    u32 limit = c->kind == CAP_REGISTER ? p->nregs : c->kind == CAP_CAPTURE ? p->ncaptures
              : c->kind == CAP_GROUP && v->parent ? p->group_size : 0;
    if (c->index >= limit || c->name >= v->names)
      return wrong(v, "capture %u of function %u does not exist here", i, child);
  }
  const Proto *first = p->protos[child - k->group_index];
  bool same = k->group_size == first->group_size && k->ncaptures == first->ncaptures;
  for (u32 i = 0; same && i < k->ncaptures; i++)
    same = k->captures[i].kind == first->captures[i].kind && k->captures[i].index == first->captures[i].index;
  return same || wrong(v, "function %u does not share the captures of its group", child);
}

static bool check_local(const Verifier *v, const LocalName *l) {
  return l->name < v->names && l->reg < v->p->nregs && l->from <= l->until && l->from <= v->p->ncode;
}

static bool check_tables(const Verifier *v) {
  const Proto *p = v->p;
  if (v->depth > AST_MAX_DEPTH) return wrong(v, "functions nest too deep");
  if (!p->ncode || !p->nextents || !p->nsites) return wrong(v, "an empty function");
  if (p->nregs > MAX_REGISTERS || p->name >= v->names) return wrong(v, "too many registers, or no name");
  if (!v->parent && (p->nparams || p->ncaptures || p->group_size != 1))
    return wrong(v, "the body of a module has parameters, captures or a group");
  for (u32 i = 0; i < p->nconsts; i++)
    if (!toil(v->toil, 1) || !check_const(v, &p->consts[i])) return wrong(v, "constant %u is malformed", i);
  for (u32 i = 0; i < p->ndescs; i++)
    if (!toil(v->toil, 1) || !check_desc(v, &p->descs[i])) return wrong(v, "descriptor %u is malformed", i);
  for (u32 i = 0; i < p->nlocals; i++)
    if (!toil(v->toil, 1) || !check_local(v, &p->locals[i])) return wrong(v, "local variable %u is malformed", i);
  if (!check_params(v)) return false;
  for (u32 i = 0; i < p->nprotos; i++)
    if (!check_child(v, i)) return false;
  return true;
}

/* ---- instructions -------------------------------------------------------------------------------------- */

static u32 desc_kind(u32 op) {
  switch (op) {
  case BC_record: return DESC_KEYS;
  case BC_indexn: return DESC_INDEX;
  case BC_field: case BC_method: return DESC_NAME;
  case BC_unpack: case BC_unpackrec: return DESC_UNPACK;
  case BC_setpath: return DESC_PATH;
  case BC_callx: case BC_tailx: return DESC_CALL;
  default: return DESC_ANNOT;
  }
}

static bool check_operand(const Verifier *v, u32 pc, char form, u32 x) {
  const Proto *p = v->p;
  u32 op = ins_op(p->code[pc]);
  switch (form) {
  case 'r': return x <= p->nregs; /* an empty run may stand behind the last register; the rest is checked by use */
  case 'k': return x & INS_CONST ? (x & ~(u32)INS_CONST) < p->nconsts : x < p->nregs;
  case 'd': return x < p->ndescs && p->descs[x].kind == desc_kind(op);
  case 'j': return x < p->ncode;
  case 'x': return op == BC_loadk ? x < p->nconsts : x < v->slots;
  case '.': return x == 0;
  default: return true;
  }
}

static bool check_numbers(const Verifier *v, Ins ins) {
  const Proto *p = v->p;
  u32 b = ins_b(ins), c = ins_c(ins);
  switch (ins_op(ins)) {
  case BC_getcap: return b < p->ncaptures;
  case BC_groupfn: return b < p->group_size && v->depth > 1;
  case BC_closure: return b < p->nprotos && p->protos[b]->group_size == 1;
  case BC_group: return b < p->nprotos && c > 1 && p->protos[b]->group_size == c && p->protos[b]->group_index == 0;
  case BC_range: return c == 2 || c == 3;
  default: return true;
  }
}

/* Flags may stand only where their operand is a register that the instruction reads by itself. */
static bool check_flags(const Proto *p, u32 pc, const InsUse *u) {
  Ins ins = p->code[pc];
  u32 op = ins_op(ins), flags = ins_flags(ins), regs[3] = {ins_a(ins), ins_b(ins), ins_c(ins)};
  static const u8 bits[3] = {INS_A_DIES, INS_B_DIES, INS_C_DIES};
  const char *form = bc_info[op].form;
  bool calls = op == BC_call || op == BC_callx || op == BC_tail || op == BC_tailx || op == BC_getmod;
  if ((flags & INS_METHOD) && !calls) return false;
  if ((flags & INS_METHOD) && op != BC_getmod && u->run_count < 2) return false; /* the function and its object */
  if (flags & ~(u32)(INS_A_DIES | INS_B_DIES | INS_C_DIES | INS_METHOD)) return false;
  for (u32 i = 0; i < 3; i++) {
    if (!(flags & bits[i])) continue;
    bool reads = form[i] == 'k' || (form[i] == 'r' && i > 0);
    if (!reads || (regs[i] & INS_CONST) || u->run_count || op == BC_checkarg) return false;
    if (i == 0 && u->write_count) return false;
  }
  return !((flags & INS_B_DIES) && (flags & INS_C_DIES) && regs[1] == regs[2]);
}

static bool check_instruction(const Verifier *v, u32 pc) {
  const Proto *p = v->p;
  Ins ins = p->code[pc];
  u32 op = ins_op(ins);
  if (op >= BC_COUNT) return wrong(v, "pc %u: no such instruction", pc);
  const char *form = bc_info[op].form, *name = bc_info[op].name;
  bool wide = form[1] == 'x' || form[1] == 'j';
  bool ok = check_operand(v, pc, form[0], ins_a(ins));
  ok &= check_operand(v, pc, form[1], wide ? ins_x(ins) : ins_b(ins));
  ok &= wide || check_operand(v, pc, form[2], ins_c(ins));
  if (!ok || !check_numbers(v, ins)) return wrong(v, "pc %u: %s: an operand is out of bounds", pc, name);
  InsUse u;
  ins_uses(p, pc, &u);
  u32 last = u.write + u.write_count + 2u * u.write_next;
  for (u32 i = 0; i < u.nreads; i++) ok &= u.reads[i] < p->nregs;
  ok &= last <= p->nregs && (!u.run_count || u.run + u.run_count <= p->nregs);
  for (u32 i = 0, at = u.write; u.dims && i < u.dims->rank; i++)
    if (u.dims->dim_binds[i]) ok &= u.dims->dim_regs[i] == at++;
  if (!ok) return wrong(v, "pc %u: %s: registers are out of bounds or not consecutive", pc, name);
  return check_flags(p, pc, &u) || wrong(v, "pc %u: %s: a flag is out of place", pc, name);
}

/* ---- extents and jumps ---------------------------------------------------------------------------------- */

static bool ends_line(const Proto *p, u32 pc) { return strchr(bc_info[ins_op(p->code[pc])].effects, 'B'); }

static bool is_branch(u32 op) { return op == BC_jnot || op == BC_jif || op == BC_jgiven; }

static bool check_shape(const Proto *p, const Extent *e) {
  u32 at_begin = ins_op(p->code[e->begin]), target;
  ins_jumps(p->code[e->begin], &target);
  switch (e->kind) {
  case EXT_IF:
    return is_branch(at_begin) && e->head == e->begin + 1 && e->head <= e->els && e->els <= e->end &&
           target == e->els && (e->els == e->end || ends_line(p, e->els - 1));
  case EXT_FOR:
    if (at_begin != BC_forprep || e->head >= e->els || ins_op(p->code[e->head]) != BC_fornext) return false;
    if (ins_a(p->code[e->begin]) != ins_a(p->code[e->head])) return false; /* fallthrough */
  case EXT_WHILE:
    return e->begin <= e->head && e->head < e->els && e->els + 1 == e->end && ins_op(p->code[e->els]) == BC_loop &&
           ins_x(p->code[e->els]) == e->head && (e->kind == EXT_FOR || e->begin == e->head);
  case EXT_TRY:
    return e->begin < e->head && e->head < e->end && e->els == e->end && ends_line(p, e->head - 1) &&
           ins_op(p->code[e->head]) == BC_catch;
  default: return false;
  }
}

/* The part of the parent that a child lies in: nothing may straddle head or els. */
static bool lies_within(const Extent *k, const Extent *p) {
  if (k->begin < p->begin || k->end > p->end) return false;
  u32 cut = p->kind == EXT_TRY ? p->head : p->kind == EXT_IF ? p->els : p->kind == EXT_FN ? p->end : p->els;
  if (p->kind == EXT_IF && k->begin < p->head) return false;
  if (p->kind == EXT_FOR && k->begin <= p->head) return false;
  /* a jump of its own ends the body: only errors lead to the handler */
  if (p->kind == EXT_TRY && k->begin < cut) return k->end < cut;
  return k->end <= cut || (k->begin >= cut && (p->kind == EXT_TRY || p->kind == EXT_IF));
}

static bool check_writes(const Verifier *v, const Extent *e) {
  const Proto *p = v->p;
  if (e->write_first > p->nwrites || e->write_count > p->nwrites - e->write_first) return false;
  for (u32 i = 0; i < e->write_count; i++) {
    u32 w = p->writes[e->write_first + i];
    if (i && w <= p->writes[e->write_first + i - 1]) return false;
    if (w & WRITE_MODULE ? (w & ~WRITE_MODULE) >= v->slots : w >= p->nregs) return false;
  }
  return true;
}

static bool check_extents(const Verifier *v) {
  const Proto *p = v->p;
  const Extent *root = &p->extents[0];
  if (root->kind != EXT_FN || root->begin || root->head || root->end != p->ncode || root->els != p->ncode ||
      root->parent != UINT32_MAX || !check_writes(v, root))
    return wrong(v, "the extent of the function is malformed");
  for (u32 i = 1; i < p->nextents; i++) {
    const Extent *e = &p->extents[i];
    bool ok = e->parent < i && e->begin < e->end && e->end <= p->ncode && e->head < p->ncode && e->els <= p->ncode;
    if (!ok || !check_shape(p, e) || !check_writes(v, e)) return wrong(v, "extent %u is malformed", i);
    if (!lies_within(e, &p->extents[e->parent])) return wrong(v, "extent %u does not lie within its parent", i);
    u32 sibling = i - 1; /* the extent before must be the parent, or have ended */
    while (sibling != e->parent && sibling != UINT32_MAX && p->extents[sibling].end <= e->begin)
      sibling = p->extents[sibling].parent;
    if (sibling != e->parent) return wrong(v, "extent %u overlaps another", i);
  }
  return true;
}

/* The innermost extent of every pc, in one walk. */
static void innermost(const Proto *p, u32 *inner) {
  u32 at = 0, next = 1;
  for (u32 pc = 0; pc < p->ncode; pc++) {
    while (p->extents[at].end <= pc) at = p->extents[at].parent;
    while (next < p->nextents && p->extents[next].begin == pc) at = next++;
    inner[pc] = at;
  }
}

static bool jump_allowed(const Proto *p, u32 pc, u32 inner, u32 target) {
  Ins ins = p->code[pc];
  u32 op = ins_op(ins);
  const Extent *own = &p->extents[inner];
  if (op == BC_loop) return (own->kind == EXT_WHILE || own->kind == EXT_FOR) && pc == own->els;
  if (op == BC_fornext) return own->kind == EXT_FOR && pc == own->head && target == own->end;
  if (is_branch(op) && own->kind == EXT_IF && pc == own->begin) return target == own->els;
  if (is_branch(op)) return op != BC_jgiven && own->kind == EXT_WHILE && target == own->end;
  for (u32 e = inner; e != UINT32_MAX; e = p->extents[e].parent) {
    const Extent *x = &p->extents[e];
    if (x->kind != EXT_FN && target == x->end) return true;
    if ((x->kind == EXT_WHILE || x->kind == EXT_FOR) && target == x->els) return true;
    if (x->kind == EXT_WHILE || x->kind == EXT_FOR) return false; /* break and continue: the innermost loop only */
  }
  return false;
}

static bool check_jumps(const Verifier *v) {
  const Proto *p = v->p;
  u32 *inner = mem_alloc(v->alloc, sizeof *inner * p->ncode);
  if (!inner) return false;
  innermost(p, inner);
  bool ok = true;
  for (u32 pc = 0; ok && pc < p->ncode; pc++) {
    u32 target, op = ins_op(p->code[pc]);
    const Extent *own = &p->extents[inner[pc]];
    if (ins_jumps(p->code[pc], &target) && !jump_allowed(p, pc, inner[pc], target))
      ok = wrong(v, "pc %u: a jump to %u, which is no boundary of an extent around it", pc, target);
    if (op == BC_catch && !(own->kind == EXT_TRY && own->head == pc))
      ok = wrong(v, "pc %u: catch outside a handler", pc);
    if (op == BC_forprep && !(own->kind == EXT_FOR && own->begin == pc))
      ok = wrong(v, "pc %u: forprep outside a loop", pc);
    if (op == BC_tail || op == BC_tailx)
      for (u32 e = inner[pc]; ok && e; e = p->extents[e].parent)
        if (p->extents[e].kind == EXT_TRY && pc < p->extents[e].head)
          ok = wrong(v, "pc %u: a tail call inside try", pc);
  }
  if (ok && !ends_line(p, p->ncode - 1)) ok = wrong(v, "the code runs off its end");
  mem_free(v->alloc, inner, sizeof *inner * p->ncode);
  return ok;
}

static bool check_sites(const Verifier *v) {
  const Proto *p = v->p;
  if (p->sites[0].kind != SITE_ENTRY || p->sites[0].pc) return wrong(v, "the first site is not the entry");
  u32 at = 1;
  for (u32 pc = 0; pc < p->ncode; pc++) {
    int kind = site_kind(p, pc);
    if (kind < 0) continue;
    if (at >= p->nsites || p->sites[at].pc != pc || p->sites[at].kind != kind)
      return wrong(v, "pc %u: its site is missing", pc);
    at++;
  }
  return at == p->nsites || wrong(v, "there are sites without an instruction");
}

/* ---- registers -------------------------------------------------------------------------------------------- */

/* What is surely so of a register on every path to a pc. Instructions that build or walk trust the kind of their
 * register, so it is proved too: nothing but the maker of a list, record, loop or text can have written it. */
enum { BORN, LIST, RECORD, WALK /* the sequence */, WALK_POSITION, WALK_COUNT, TEXT,
       RECEIVER /* the object of a method, or none: a hole */, FACTS };

typedef struct Births {
  const Verifier *v;
  const Liveness *l;
  u64 *in, *state; /* FACTS sets each */
  u8 *reached;
  size_t words;    /* of all facts */
  bool changed, report;
} Births;

static bool sure(const Births *x, u32 fact, u32 r) { return x->state[fact * x->l->words + (r >> 6)] >> (r & 63) & 1; }

static void learn(Births *x, u32 fact, u32 r) { x->state[fact * x->l->words + (r >> 6)] |= (u64)1 << (r & 63); }

static void forget(Births *x, u32 r) {
  for (u32 fact = 0; fact < FACTS; fact++) x->state[fact * x->l->words + (r >> 6)] &= ~((u64)1 << (r & 63));
}

static void meet(Births *x, u32 pc) {
  u32 block = x->l->block_of[pc];
  u64 *in = x->in + block * x->words;
  for (size_t w = 0; w < x->words; w++) {
    u64 both = x->reached[block] ? in[w] & x->state[w] : x->state[w];
    x->changed |= both != in[w];
    in[w] = both;
  }
  x->changed |= !x->reached[block];
  x->reached[block] = 1;
}

static bool need(const Births *x, u32 pc, u32 fact, u32 r) {
  static const char *const lacks[FACTS] = {"holds no value", "holds no list that was made for it",
                                           "holds no record that was made for it", "holds no loop",
                                           "holds no position of that loop", "holds no count of that loop",
                                           "holds no text that was made for it", "holds no object of a method"};
  if (!x->report || sure(x, fact, r)) return true;
  return wrong(x->v, "pc %u: %s reads r%u, which %s on some path", pc, bc_info[ins_op(x->v->p->code[pc])].name, r,
               lacks[fact]);
}

static bool is_text_operand(const Births *x, u32 k) {
  if (!(k & INS_CONST)) return false;
  return x->v->p->consts[k & ~(u32)INS_CONST].kind == CK_TEXT;
}

/* A parameter that a call may leave out: it holds no value until jgiven has found one, or its default was written. */
static bool is_optional(const Births *x, u32 r) {
  const Proto *p = x->v->p;
  return r < p->nparams && p->params[r].has_default;
}

static bool needs(const Births *x, u32 pc, const InsUse *u) {
  Ins ins = x->v->p->code[pc];
  u32 a = ins_a(ins);
  bool ok = true;
  if (ins_op(ins) == BC_jgiven && is_optional(x, a)) return true;
  for (u32 i = 0; ok && i < u->nreads; i++) ok = need(x, pc, BORN, u->reads[i]);
  for (u32 i = 0; ok && i < u->run_count; i++) {
    const bool receiver = i == 1 && ins_flags(ins) & INS_METHOD && sure(x, RECEIVER, u->run + i);
    ok = receiver || need(x, pc, ins_op(ins) == BC_join ? TEXT : BORN, u->run + i);
  }
  for (u32 i = 0; ok && i < u->ncaptures; i++)
    if (u->captures[i].kind == CAP_REGISTER) ok = need(x, pc, BORN, u->captures[i].index);
  for (u32 i = 0; ok && u->dims && i < u->dims->rank; i++)
    if (ins_reads_dim(u, i)) ok = need(x, pc, BORN, u->dims->dim_regs[i]);
  if (!ok) return false;
  switch (ins_op(ins)) {
  case BC_append: case BC_extend: case BC_toarray: return need(x, pc, LIST, a);
  case BC_recput: case BC_recspread: return need(x, pc, RECORD, a);
  case BC_fornext: /* all three of one loop: forprep writes them together */
    return need(x, pc, WALK, a) && need(x, pc, WALK_POSITION, a + 1) && need(x, pc, WALK_COUNT, a + 2);
  case BC_import:
    if (!is_text_operand(x, ins_b(ins)) || !is_text_operand(x, ins_c(ins)))
      return wrong(x->v, "pc %u: import of no text", pc);
    return true;
  default: return true;
  }
}

/* What the registers written are afterwards. */
static void writes(Births *x, u32 pc, const InsUse *u) {
  const Proto *p = x->v->p;
  Ins ins = p->code[pc];
  u32 op = ins_op(ins);
  bool keeps = op == BC_append || op == BC_extend || op == BC_recput || op == BC_recspread || op == BC_fornext;
  for (u32 i = 0; i < u->write_count && !keeps; i++) {
    forget(x, u->write + i);
    learn(x, BORN, u->write + i);
    if (op == BC_forprep) learn(x, WALK + i, u->write + i);
  }
  if (u->write_next) {
    forget(x, u->write + 2);
    learn(x, BORN, u->write + 2);
  }
  if (op == BC_method) {
    forget(x, u->write + 1);
    learn(x, RECEIVER, u->write + 1);
  }
  if (op == BC_list) learn(x, LIST, u->write);
  if (op == BC_record) learn(x, RECORD, u->write);
  if (op == BC_fmt || op == BC_join || (op == BC_move && is_text_operand(x, ins_b(ins))) ||
      (op == BC_loadk && p->consts[ins_x(ins)].kind == CK_TEXT))
    learn(x, TEXT, u->write);
}

static bool step(Births *x, u32 pc) {
  Ins ins = x->v->p->code[pc];
  InsUse u;
  ins_uses(x->v->p, pc, &u);
  bool ok = needs(x, pc, &u);
  for (u32 i = 0; i < u.run_count; i++) forget(x, u.run + i);
  u32 handler = x->l->handler[x->l->block_of[pc]], target;
  if (handler != UINT32_MAX && strchr(bc_info[ins_op(ins)].effects, 'E')) meet(x, handler);
  if (ins_flags(ins) & INS_A_DIES) forget(x, ins_a(ins));
  if (ins_flags(ins) & INS_B_DIES) forget(x, ins_b(ins));
  if (ins_flags(ins) & INS_C_DIES) forget(x, ins_c(ins));
  if (ins_jumps(ins, &target)) {
    const bool given = ins_op(ins) == BC_jgiven, sure_before = given && sure(x, BORN, ins_a(ins));
    if (given) learn(x, BORN, ins_a(ins));
    meet(x, target);
    if (given && !sure_before) forget(x, ins_a(ins));
  }
  writes(x, pc, &u);
  return ok;
}

static bool run_blocks(Births *x) {
  const Liveness *l = x->l;
  bool ok = true;
  for (u32 b = 0; ok && b < l->nblocks; b++) {
    if (!x->reached[b]) continue;
    if (!toil(x->v->toil, 1 + l->starts[b + 1] - l->starts[b])) return false;
    memcpy(x->state, x->in + b * x->words, sizeof *x->state * x->words);
    for (u32 pc = l->starts[b]; ok && pc < l->starts[b + 1]; pc++) ok = step(x, pc);
    if (b + 1 < l->nblocks && !ends_line(x->v->p, l->starts[b + 1] - 1)) meet(x, l->starts[b + 1]);
  }
  return ok;
}

static bool check_registers(const Verifier *v) {
  const Proto *p = v->p;
  Liveness *l = liveness_within(p, v->alloc, v->toil);
  if (!l) return false;
  Births x = {.v = v, .l = l, .words = (size_t)l->words * FACTS};
  size_t bytes = sizeof(u64) * x.words * (l->nblocks + (size_t)1);
  x.in = mem_alloc_zero(v->alloc, bytes);
  x.reached = mem_alloc_zero(v->alloc, l->nblocks);
  bool ok = x.in && x.reached;
  if (ok) {
    x.state = x.in + l->nblocks * x.words;
    for (u32 i = 0; i < p->nparams; i++)
      if (!is_optional(&x, i)) learn(&x, BORN, i);
    meet(&x, 0);
    do {
      x.changed = false;
      (void)run_blocks(&x);
    } while (x.changed && !toil_ended(v->toil));
    x.report = true;
    ok = run_blocks(&x);
  }
  mem_free(v->alloc, x.in, bytes);
  mem_free(v->alloc, x.reached, l->nblocks);
  liveness_free(l);
  return ok;
}

/* ---- all -------------------------------------------------------------------------------------------------- */

static bool verify(const Verifier *outer, const Proto *p) {
  Verifier v = *outer;
  v.p = p;
  v.parent = outer->p;
  v.depth = outer->depth + 1;
  if (!check_tables(&v)) return false;
  for (u32 pc = 0; pc < p->ncode; pc++)
    if (!toil(v.toil, 1) || !check_instruction(&v, pc)) return false;
  if (!check_extents(&v) || !check_jumps(&v) || !check_sites(&v) || !check_registers(&v)) return false;
  for (u32 i = 0; i < p->nprotos; i++)
    if (!verify(&v, p->protos[i])) return false;
  return true;
}

bool proto_verify(const Proto *p, u32 slots, u32 names, Allocator *scratch, Buf *why, Toil *t) {
  Verifier v = {.slots = slots, .names = names, .alloc = scratch, .why = why, .toil = t};
  return verify(&v, p);
}
