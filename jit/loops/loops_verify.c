/* loops_verify.c — the rules of well-formed loop IR: nesting, scopes, types, and what each kind of function may hold.
 *
 * One walk over the body with a stack of open heads; a value is visible while the block it was defined in is open. */
#include "jit/loops/loops.h"

#include <string.h>

/* An open head and its state. */
typedef struct Open {
  u32 head;
  u32 defined;    /* height of `defined` when the block began */
  bool in_else;
  bool live;      /* the statement being read can be reached */
  bool arm_ends;  /* the first arm of an if reached its end */
  bool yielded;   /* the current arm or body has yielded */
  bool prefixed;
} Open;

typedef struct Verifier {
  const LoopFn *fn;
  Buf *why;
  bool failed;
  u32 at;       /* position in the body */
  u8 *visible;  /* per node */
  u8 *seen;     /* per node: already in the body */
  VEC(u32) defined; /* visible values in order of definition, to be hidden when their block ends */
  VEC(Open) open;
} Verifier;

static bool bad(Verifier *v, const char *rule) {
  if (v->failed) return false;
  v->failed = true;
  if (!v->why) return false;
  buf_printf(v->why, "%s: %s", name_text(&v->fn->module->names, v->fn->name), rule);
  if (v->at < v->fn->body.count) {
    u32 id = v->fn->body.data[v->at];
    if (id < v->fn->nodes.count)
      buf_printf(v->why, " (statement %u, %s)", v->at + 1, loop_op_text((LoopOp)loop_node(v->fn, id)->op));
  }
  return false;
}

static Open *top(Verifier *v) { return &v->open.data[v->open.count - 1]; }
static const LoopNode *verify_node(const Verifier *v, u32 id) { return loop_node(v->fn, id); }
static LoopType type_of(const Verifier *v, u32 id) { return loop_type_of(v->fn, id); }

static bool show(Verifier *v, u32 id) {
  v->visible[id] = 1;
  return vec_push(v->fn->module->alloc, &v->defined, id) || bad(v, "out of memory");
}

static void hide_from(Verifier *v, u32 height) {
  while (v->defined.count > height) v->visible[v->defined.data[--v->defined.count]] = 0;
}

/* ---- operands and types -------------------------------------------------------------------- */

static bool usable(Verifier *v, u32 id) {
  if (!id || id >= v->fn->nodes.count) return bad(v, "an operand is no node");
  u8 op = verify_node(v, id)->op;
  if (op == LOOP_PARAM || op == LOOP_CONST || op == LOOP_TABLE) return true;
  return v->visible[id] || bad(v, "an operand is not defined here");
}

static bool scalar(Verifier *v, u32 id) {
  if (!usable(v, id)) return false;
  LoopType t = type_of(v, id);
  return (t != LT_VOID && t < LT_PTR) || bad(v, "an operand is no scalar");
}

static bool scalar_of(Verifier *v, u32 id, LoopType t) {
  return scalar(v, id) && (type_of(v, id) == t || bad(v, "an operand has the wrong type"));
}

/* Does a type belong to the classes of a table column: B I F N A, or BI. */
static bool in_class(LoopType t, const char *classes) {
  for (; *classes; classes++) {
    if (*classes == 'A') return true;
    if (*classes == 'B' && t == LT_I1) return true;
    if ((*classes == 'I' || *classes == 'N') && loop_is_int(t)) return true;
    if ((*classes == 'F' || *classes == 'N') && loop_is_float(t)) return true;
  }
  return false;
}

static const char *const op_classes[LOOP_OP_COUNT] = {
#define LOOP_OP(NAME, text, form, types, doc) #types,
#include "jit/loops/loops.def"
};

static const char *const reduce_classes[LOOP_REDUCE_COUNT] = {
#define LOOP_REDUCE(NAME, text, types, doc) #types,
#include "jit/loops/loops.def"
};

static bool check_convert(Verifier *v, const LoopNode *n) {
  LoopType from = type_of(v, n->a), to = (LoopType)n->type;
  if (to == LT_VOID || to >= LT_PTR) return bad(v, "conversion to what is no scalar type");
  if (n->op == LOOP_CONVERT) return to != LT_I1 || bad(v, "conversion to i1");
  return (from != LT_I1 && to != LT_I1 && loop_type_bytes(from) == loop_type_bytes(to)) ||
         bad(v, "bitcast between widths");
}

static bool check_arithmetic(Verifier *v, const LoopNode *n) {
  LoopForm form = loop_op_form((LoopOp)n->op);
  u32 operands[3] = {n->a, n->b, n->c};
  u32 count = form == LOOP_FORM_UNARY || form == LOOP_FORM_CONVERT || form == LOOP_FORM_PREFIX ? 1
              : form == LOOP_FORM_BINARY || form == LOOP_FORM_COMPARE                          ? 2
                                                                                                : 3;
  for (u32 i = 0; i < 3; i++)
    if (i < count ? !scalar(v, operands[i]) : operands[i] != 0) return bad(v, "wrong number of operands");
  LoopType t = type_of(v, n->a);
  if (form == LOOP_FORM_SELECT) {
    if (t != LT_I1) return bad(v, "a condition is no i1");
    return (type_of(v, n->b) == type_of(v, n->c) && n->type == type_of(v, n->b)) ||
           bad(v, "operands of different types");
  }
  if (!in_class(t, op_classes[n->op])) return bad(v, "the operation does not take this type");
  if (form == LOOP_FORM_CONVERT) return check_convert(v, n);
  for (u32 i = 1; i < count; i++)
    if (type_of(v, operands[i]) != t) return bad(v, "operands of different types");
  if ((n->op == LOOP_ROUND_F16 || n->op == LOOP_ROUND_BF16) && t != LT_F32)
    return bad(v, "the operation does not take this type");
  return n->type == (form == LOOP_FORM_COMPARE ? LT_I1 : t) || bad(v, "result of the wrong type");
}

static bool check_math(Verifier *v, const LoopNode *n) {
  u32 operands[3] = {n->a, n->b, n->c}, count = n->c ? 3 : n->b ? 2 : 1;
  const LoopModule *m = v->fn->module;
  for (u32 i = 0; i < count; i++)
    if (!scalar_of(v, operands[i], (LoopType)n->type)) return false;
  if (!loop_is_float((LoopType)n->type)) return bad(v, "the operation does not take this type");
  const char *name = name_text(&m->names, (Name)n->imm);
  const LoopFn *fn = loop_module_find_math(m, name, (LoopType)n->type);
  if (fn == v->fn) return bad(v, "a math function that uses itself");
  if (fn) return fn->params.count == count || bad(v, "wrong number of operands for the math function");
  const LoopMath *c = loop_module_math(m, name, (LoopType)n->type);
  if (c) return c->arity == count || bad(v, "wrong number of operands for the math function");
  return m->math_count == 0 || bad(v, "no such math function");
}

static bool check_access(Verifier *v, const LoopNode *n) {
  if (!usable(v, n->a)) return false;
  const LoopNode *b = verify_node(v, n->a);
  const LoopTerm *t = loop_terms(v->fn, n);
  if (b->type != LT_PTR) return bad(v, "access to what is no buffer");
  if (n->mem != b->mem) return bad(v, "access of another type than the buffer's");
  if (b->op == LOOP_PARAM && !(b->aux & (n->op == LOOP_LOAD ? LOOP_IN : LOOP_OUT)))
    return bad(v, n->op == LOOP_LOAD ? "load from an out buffer" : "store to an in buffer");
  if (b->op == LOOP_TABLE && n->op == LOOP_STORE) return bad(v, "store to a table");
  for (u32 i = 0; i < n->count; i++) {
    for (u32 k = 0; k < 2; k++)
      if (t[i].stride[k] && (!scalar_of(v, t[i].stride[k], LT_I64) || verify_node(v, t[i].stride[k])->op != LOOP_PARAM))
        return bad(v, "a stride is no i64 parameter");
    if (!t[i].var || !scalar_of(v, t[i].var, LT_I64)) return bad(v, "an index variable is no i64");
  }
  if (n->op == LOOP_LOAD) return n->type == loop_value_type((LoopType)n->mem) || bad(v, "result of the wrong type");
  return scalar_of(v, n->b, loop_value_type((LoopType)n->mem));
}

static bool check_values(Verifier *v, const LoopNode *n, u32 skip) { /* exit values */
  for (u32 i = skip; i < n->count; i++)
    if (!scalar(v, loop_list(v->fn, n)[i])) return false;
  return true;
}

static bool native_only(Verifier *v) { return v->fn->kind == LOOP_NATIVE || bad(v, "only native functions have this"); }

static bool check_check(Verifier *v, const LoopNode *n) {
  if (v->fn->kind == LOOP_MATH_FN) return bad(v, "a math function has no checks");
  if (n->aux >= LOOP_CHECK_COUNT || !scalar(v, n->a)) return bad(v, "unknown check");
  LoopType t = type_of(v, n->a);
  switch (n->aux) {
    case LOOP_CHECK_INDEX:
      if (!scalar_of(v, n->a, LT_I64) || !scalar_of(v, n->b, LT_I64)) return false;
      break;
    case LOOP_CHECK_ZERO_DIV:
      if (!loop_is_int(t)) return bad(v, "the check does not take this type");
      break;
    case LOOP_CHECK_ASSERT:
      if (t != LT_I1) return bad(v, "the check does not take this type");
      break;
    default:
      if (!loop_is_float(t)) return bad(v, "the check does not take this type");
  }
  if (v->fn->kind == LOOP_KERNEL) return (n->imm < 0xFFFF && n->count == 0) || bad(v, "a kernel's check with an exit");
  return (n->imm != 0 && n->imm <= UINT32_MAX && check_values(v, n, 0)) || bad(v, "exit 0 is the return");
}

static bool check_call(Verifier *v, const LoopNode *n) {
  if (!native_only(v)) return false;
  const LoopFn *f = loop_module_find(v->fn->module, name_text(&v->fn->module->names, (Name)n->imm));
  if (!f) return bad(v, "call of an unknown function");
  u32 extra = f->kind == LOOP_KERNEL ? 2 : 0; /* lo, hi */
  if (n->a != f->params.count + extra || n->count < n->a) return bad(v, "wrong number of arguments");
  bool asks = f->kind == LOOP_KERNEL && n->c == 0;
  if (n->c == 0 && (!asks || n->count > n->a)) return bad(v, "exit 0 is the return");
  if (n->b != (f->kind == LOOP_NATIVE ? f->results.count : asks)) return bad(v, "wrong number of results");
  for (u32 i = 0; i < n->a; i++) {
    u32 arg = loop_list(v->fn, n)[i];
    if (i >= f->params.count) {
      if (!scalar_of(v, arg, LT_I64)) return false;
      continue;
    }
    const LoopNode *param = loop_node(f, f->params.data[i]);
    if (param->type != LT_PTR) {
      if (!scalar_of(v, arg, (LoopType)param->type)) return false;
      continue;
    }
    if (!usable(v, arg)) return false;
    const LoopNode *b = verify_node(v, arg);
    if (b->op != LOOP_PARAM || b->type != LT_PTR || b->mem != param->mem)
      return bad(v, "an argument is no such buffer");
    if (param->aux & ~b->aux) return bad(v, "a buffer is passed on for more than it allows");
  }
  for (u32 i = 0; i < n->b; i++)
    if (!show(v, loop_result_of(v->fn, v->fn->body.data[v->at], i))) return false;
  return check_values(v, n, n->a);
}

/* ---- blocks -------------------------------------------------------------------------------- */

static bool check_head(Verifier *v, u32 id, const LoopNode *n) {
  const LoopFn *fn = v->fn;
  const u32 *list = loop_list(fn, n);
  u32 first = n->op == LOOP_IF ? 1 : n->a;
  if (n->count != first + n->b) return bad(v, "a malformed head");
  if (fn->kind == LOOP_MATH_FN && n->op != LOOP_IF && n->op != LOOP_FOR && n->op != LOOP_WHILE)
    return bad(v, "a math function has only if, for and while");
  if (n->op == LOOP_IF && !scalar_of(v, list[0], LT_I1)) return false;
  for (u32 i = 0; i < n->a; i++)
    if (!scalar(v, list[i]) || (type_of(v, list[i]) != LT_I64 && type_of(v, list[i]) != LT_U64))
      return bad(v, "a trip count is no i64 or u64");
  if ((n->op == LOOP_REDUCE || n->op == LOOP_SCAN) && n->a == 0) return bad(v, "no axes");
  for (u32 i = 0; i < n->b; i++) {
    if (!scalar_of(v, list[first + i], type_of(v, loop_carry_of(fn, id, i)))) return false;
    if (type_of(v, loop_carry_of(fn, id, i)) != type_of(v, loop_result_of(fn, id, i)))
      return bad(v, "a malformed head");
  }
  if (n->op == LOOP_REDUCE || n->op == LOOP_SCAN) {
    if (n->aux >= LOOP_REDUCE_COUNT || n->mem >= LOOP_ORDER_COUNT) return bad(v, "a malformed head");
    LoopType t = type_of(v, loop_result_of(fn, id, 0));
    if (t == LT_VOID || t >= LT_PTR || !in_class(t, reduce_classes[n->aux]))
      return bad(v, "the reduction does not take this type");
  }
  for (u32 i = 0; n->op == LOOP_IF && i < n->c; i++) {
    LoopType t = type_of(v, loop_result_of(fn, id, i));
    if (t == LT_VOID || t >= LT_PTR) return bad(v, "a result of an if is no scalar");
  }
  if (fn->kind == LOOP_KERNEL && v->open.count == 1) {
    if (n->op != LOOP_PAR) return bad(v, "a kernel's outermost loop is a par");
    if (top(v)->yielded) return bad(v, "a kernel has one outermost par");
    top(v)->yielded = true;
  }
  if (!vec_push(fn->module->alloc, &v->open, (Open){.head = id, .defined = v->defined.count, .live = true}))
    return bad(v, "out of memory");
  for (u32 i = 0; i < n->a; i++)
    if (!show(v, loop_index_of(id, i))) return false;
  for (u32 i = 0; i < n->b; i++)
    if (!show(v, loop_carry_of(fn, id, i))) return false;
  return true;
}

/* The end of an arm or body: does it end as its head demands. */
static bool check_block_end(Verifier *v) {
  Open *o = top(v);
  const LoopNode *h = verify_node(v, o->head);
  switch (h->op) {
    case LOOP_WHILE:
      if (o->live) return bad(v, "a while's body must end by next or break");
      break;
    case LOOP_FOR:
      if (o->live && h->b) return bad(v, "a for with carried values must end by next");
      break;
    case LOOP_REDUCE:
      if (!o->yielded) return bad(v, "a reduce's body must end by yield");
      break;
    case LOOP_SCAN:
      if (!o->prefixed) return bad(v, "a scan's body needs a prefix");
      break;
    case LOOP_IF:
      if (o->live && h->c) return bad(v, "an arm must end by yield");
      break;
    default: break;
  }
  return true;
}

static bool check_else(Verifier *v, const LoopNode *n) {
  Open *o = top(v);
  if (v->open.count < 2 || o->head != n->a || verify_node(v, o->head)->op != LOOP_IF || o->in_else)
    return bad(v, "else without if");
  if (!check_block_end(v)) return false;
  hide_from(v, o->defined);
  o->in_else = true;
  o->arm_ends = o->live || o->yielded;
  o->yielded = false;
  o->live = true;
  return true;
}

static bool check_end(Verifier *v, const LoopNode *n) {
  if (v->open.count < 2 || top(v)->head != n->a) return bad(v, "end of what is not open");
  if (!check_block_end(v)) return false;
  Open o = *top(v);
  const LoopNode *h = verify_node(v, o.head);
  hide_from(v, o.defined);
  v->open.count--;
  bool reaches = true; /* does control go on behind the head */
  if (h->op == LOOP_IF) {
    if (h->c && !o.in_else) return bad(v, "an if with results needs an else");
    reaches = !o.in_else || o.arm_ends || o.live || o.yielded;
  }
  if (!reaches) top(v)->live = false;
  for (u32 i = 0; i < h->c; i++)
    if (!show(v, loop_result_of(v->fn, o.head, i))) return false;
  return true;
}

static bool check_terminator(Verifier *v, const LoopNode *n) {
  const LoopFn *fn = v->fn;
  Open *o = top(v);
  u32 target = 0;
  if (n->op == LOOP_EXIT) {
    o->live = false;
    return native_only(v) &&
           (n->imm != 0 && n->imm <= UINT32_MAX ? check_values(v, n, 0) : bad(v, "exit 0 is the return"));
  }
  if (n->op == LOOP_YIELD) {
    target = o->head;
    if (v->open.count < 2 || (verify_node(v, target)->op != LOOP_IF && verify_node(v, target)->op != LOOP_REDUCE))
      return bad(v, "yield outside an if or reduce");
    o->yielded = true;
  } else if (n->op == LOOP_RETURN) {
    if (fn->kind == LOOP_KERNEL) return bad(v, "a kernel does not return");
    for (u32 i = 1; i < v->open.count; i++) {
      u8 op = verify_node(v, v->open.data[i].head)->op;
      if (op == LOOP_PAR || op == LOOP_REDUCE || op == LOOP_SCAN) return bad(v, "return out of a par, reduce or scan");
    }
  } else {
    for (u32 i = v->open.count; i-- > 1 && !target;) {
      u8 op = verify_node(v, v->open.data[i].head)->op;
      if (op == LOOP_FOR || op == LOOP_WHILE) target = v->open.data[i].head;
      else if (op != LOOP_IF) break;
    }
    if (!target) return bad(v, "next or break outside a for or while");
  }
  if (n->a != target) return bad(v, "a terminator of another head");
  u32 results = target ? verify_node(v, target)->c : fn->results.count;
  if (n->count != results) return bad(v, "wrong number of values");
  for (u32 i = 0; i < results; i++) {
    LoopType t = target ? type_of(v, loop_result_of(fn, target, i)) : (LoopType)fn->results.data[i];
    if (!scalar_of(v, loop_list(fn, n)[i], t)) return false;
  }
  o->live = false;
  return true;
}

/* ---- the walk ------------------------------------------------------------------------------ */

static bool check_statement(Verifier *v, u32 id) {
  const LoopFn *fn = v->fn;
  if (!id || id >= fn->nodes.count) return bad(v, "the body names no node");
  const LoopNode *n = verify_node(v, id);
  if (v->seen[id]) return bad(v, "a node stands in the body twice");
  v->seen[id] = 1;
  if (n->op == LOOP_END) return check_end(v, n);
  if (n->op == LOOP_ELSE) return check_else(v, n);
  if (!top(v)->live) return bad(v, "a statement that cannot be reached");
  bool outermost = fn->kind == LOOP_KERNEL && v->open.count == 1;
  if (outermost && top(v)->yielded) return bad(v, "a statement behind a kernel's outermost par");
  if (outermost && !loop_is_head(n) && n->op != LOOP_LOAD && loop_op_form((LoopOp)n->op) >= LOOP_FORM_ACCESS)
    return bad(v, "only pure statements stand before a kernel's par");
  switch (loop_op_form((LoopOp)n->op)) {
    case LOOP_FORM_LEAF: return bad(v, "a leaf stands in the body");
    case LOOP_FORM_HEAD: return check_head(v, id, n);
    case LOOP_FORM_TERM: return check_terminator(v, n);
    case LOOP_FORM_CHECK: return check_check(v, n);
    case LOOP_FORM_CALL: return check_call(v, n);
    case LOOP_FORM_EXIT:
      if (n->op == LOOP_EXIT) return check_terminator(v, n);
      return native_only(v) &&
             (n->imm != 0 && n->imm <= UINT32_MAX ? check_values(v, n, 0) : bad(v, "exit 0 is the return"));
    case LOOP_FORM_ACCESS:
      if (!check_access(v, n)) return false;
      return n->op == LOOP_STORE || show(v, id);
    case LOOP_FORM_MATH: return check_math(v, n) && show(v, id);
    case LOOP_FORM_PREFIX: {
      const LoopNode *h = v->open.count > 1 ? verify_node(v, top(v)->head) : NULL;
      if (!h || h->op != LOOP_SCAN || top(v)->prefixed)
        return bad(v, "a scan's body has one prefix, not inside another block");
      top(v)->prefixed = true;
      return scalar_of(v, n->a, type_of(v, loop_result_of(fn, top(v)->head, 0))) && n->type == type_of(v, n->a) &&
             show(v, id);
    }
    default: return check_arithmetic(v, n) && show(v, id);
  }
}

static bool check_signature(Verifier *v) {
  const LoopFn *fn = v->fn;
  for (u32 i = 0; i < fn->params.count; i++) {
    const LoopNode *n = verify_node(v, fn->params.data[i]);
    bool buffer = n->type == LT_PTR;
    if (fn->kind == LOOP_MATH_FN && n->type != fn->math_type)
      return bad(v, "a parameter of another type than the math function's");
    if (!buffer && (n->type == LT_VOID || n->type > LT_PTR)) return bad(v, "a parameter without a scalar type");
    if (buffer && (n->mem == LT_VOID || n->mem == LT_PTR || n->aux < LOOP_IN || n->aux > LOOP_INOUT))
      return bad(v, "a buffer without element type or direction");
    for (u32 k = 0; k < i; k++)
      if (verify_node(v, fn->params.data[k])->list == n->list) return bad(v, "two parameters of one name");
  }
  if (fn->kind == LOOP_KERNEL && fn->results.count) return bad(v, "a kernel with results");
  if (fn->kind == LOOP_MATH_FN && (!loop_is_float(fn->math_type) || fn->params.count < 1 || fn->params.count > 3))
    return bad(v, "a math function has one to three float parameters");
  for (u32 i = 0; i < fn->results.count; i++)
    if (fn->results.data[i] == LT_VOID || fn->results.data[i] >= LT_PTR)
      return bad(v, "a result without a scalar type");
  return true;
}

WeftStatus loops_verify(const LoopFn *fn, Buf *why) {
  Allocator *alloc = fn->module->alloc;
  Verifier v = {.fn = fn, .why = why, .at = UINT32_MAX};
  v.visible = mem_alloc_zero(alloc, fn->nodes.count);
  v.seen = mem_alloc_zero(alloc, fn->nodes.count);
  if (!v.visible || !v.seen || !vec_push(alloc, &v.open, (Open){.live = true})) bad(&v, "out of memory");
  bool ok = !v.failed && check_signature(&v);
  for (v.at = 0; ok && !fn->is_extern && v.at < fn->body.count; v.at++) ok = check_statement(&v, fn->body.data[v.at]);
  if (ok && v.open.count > 1) ok = bad(&v, "a head is not closed");
  if (ok && !fn->is_extern && fn->kind != LOOP_KERNEL && fn->results.count && top(&v)->live)
    ok = bad(&v, "the function must end by return");
  if (ok && !fn->is_extern && fn->kind == LOOP_KERNEL && !top(&v)->yielded)
    ok = bad(&v, "a kernel has one outermost par");
  mem_free(alloc, v.visible, fn->nodes.count);
  mem_free(alloc, v.seen, fn->nodes.count);
  vec_free(alloc, &v.defined);
  vec_free(alloc, &v.open);
  return ok && !v.failed ? WEFT_OK : WEFT_ERROR;
}
