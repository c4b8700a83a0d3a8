/* gen_ops.c — build tool: what the preprocessor cannot make of the names and signatures of lang/ops.def.
 *
 *   gen_ops FILE.h
 *
 * writes for each operation
 *   #define SHOWN_linalg_eigh "linalg.eigh"
 *   #define SIGNATURE_linalg_eigh "(x)"
 *   #define PARAMS_linalg_eigh true, 1, (const OpParam[]){{"x", NULL, 1, false, false, false, false, PARAM_operand}}
 * which lang/ops.c puts into its table: the name and the signature as shown; whether it gives a list; the
 * number of parameters, and the parameters. It refuses a row with a parameter that does not say what it holds. */
#include "lang/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name, *signature, *family, *kernel;
} rows[] = {
#define OP(name, signature, family, dtype, shape, needs, check, effect, agree, kernel, ...) \
  {#name, signature, #family, #kernel},
#include "lang/ops.def"
#undef OP
};

#define OP_MODULE(name) #name,
static const char *const modules[] = {OP_MODULES(OP_MODULE)};
#undef OP_MODULE

#define PARAM_KIND(kind) #kind,
static const char *const kinds[] = {OP_PARAM_KINDS(PARAM_KIND)};
#undef PARAM_KIND

static void die(const char *name, const char *what) {
  fprintf(stderr, "gen_ops: %s: %s\n", name, what);
  exit(1);
}

/* No module has a _ in its name. */
static void put_shown(FILE *f, const char *name) {
  size_t n = strcspn(name, "_"), len = strlen(name);
  bool inside = false;
  for (size_t m = 0; m < COUNT_OF(modules); m++)
    inside |= n < len && strlen(modules[m]) == n && strncmp(name, modules[m], n) == 0;
  fprintf(f, "#define SHOWN_%s \"%.*s%s%s\"\n", name, (int)n, name, inside ? "." : "", name + (inside ? n + 1 : n));
}

/* What stands behind a default, which may hold calls and texts in single quotes. */
static const char *skip_default(const char *name, const char *s) {
  int depth = 0;
  for (; *s && (depth > 0 || (*s != ',' && *s != ')')); s++) {
    if (*s == '(') depth++;
    else if (*s == ')') depth--;
    else if (*s == '\'' && !(s = strchr(s + 1, '\''))) die(name, "a text in its signature does not end");
  }
  return s;
}

static bool is_one_of(const char *word, const char *const *words, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(word, words[i]) == 0) return true;
  return false;
}

/* The kind of parameters that do not say one; PARAM_KIND_COUNT: each must. */
static ParamKind kind_unsaid(const char *family, const char *kernel) {
  static const char *const values[] = {"text", "io", "tree", "data", "control"}, *const strips[] = {"unary", "binary"};
  if (is_one_of(kernel, strips, COUNT_OF(strips))) return PARAM_operand;
  bool any = strcmp(kernel, "weft") == 0 || is_one_of(family, values, COUNT_OF(values));
  return any ? PARAM_any : PARAM_KIND_COUNT;
}

/* `: kind` behind a name; what stands behind it. */
static const char *read_kind(const char *name, const char *s, ParamKind unsaid, u8 *out) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
  *out = (u8)unsaid;
  if (strncmp(s, ": ", 2) != 0) {
    if (unsaid == PARAM_KIND_COUNT) die(name, "a parameter does not say what it holds, as `axis: axis=nil` does");
    return s;
  }
  if (unsaid != PARAM_KIND_COUNT) die(name, "its parameters are all of one kind, and need not say it");
  size_t len = strspn(s += 2, letters);
  for (size_t i = 0; i < COUNT_OF(kinds); i++)
    if (strlen(kinds[i]) == len && strncmp(kinds[i], s, len) == 0) *out = (u8)i;
  if (*out == PARAM_KIND_COUNT || *out == PARAM_any) die(name, "a kind of parameter that is not in OP_PARAM_KINDS");
  return s + len;
}

static bool is_truth(const char *s) { return strncmp(s, "true", 4) == 0 || strncmp(s, "false", 5) == 0; }

static u32 parse(const char *name, const char *s, ParamKind unsaid, OpParam *out, bool *gives_list) {
  u32 count = 0;
  bool keyword_only = false;
  if (*s++ != '(') die(name, "its signature does not begin with (");
  while (*s != ')') {
    if (count == OP_MAX_PARAMS) die(name, "more parameters than OP_MAX_PARAMS");
    OpParam *p = &out[count++];
    bool rest = strncmp(s, "...", 3) == 0;
    if (rest) s += 3;
    *p = (OpParam){.name = s, .len = (u32)strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_"),
                   .keyword_only = keyword_only, .rest = rest};
    if (!p->len) die(name, "a parameter without a name");
    keyword_only |= rest;
    s = read_kind(name, s + p->len, unsaid, &p->kind);
    if (*s == '=') {
      p->has_default = true;
      p->nil_default = strncmp(s, "=nil", 4) == 0;
      p->initial = s + 1;
      s = skip_default(name, s + 1);
      if (s == p->initial) die(name, "a default that is empty");
    }
    if (unsaid == PARAM_KIND_COUNT && (p->initial && is_truth(p->initial)) != (p->kind == PARAM_flag))
      die(name, "a flag is what has the default true or false");
    if (strncmp(s, ", ", 2) == 0 && s[2] != ')') s += 2;
    else if (*s != ')') die(name, "its signature is no list of parameters");
  }
  *gives_list = strcmp(s + 1, " -> list") == 0;
  if (s[1] && !*gives_list) die(name, "its signature goes on behind )");
  return count;
}

/* The default, up to where the next parameter begins, inside of a text of C. */
static void put_default(FILE *f, const char *name, const OpParam *p) {
  for (const char *s = p->initial, *end = skip_default(name, s); s < end; s++)
    fprintf(f, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
}

/* As users see it. */
static void put_signature(FILE *f, const char *name, const OpParam *params, u32 count) {
  fprintf(f, "#define SIGNATURE_%s \"(", name);
  for (u32 i = 0; i < count; i++) {
    const OpParam *p = &params[i];
    fprintf(f, "%s%s%.*s%s", i ? ", " : "", p->rest ? "..." : "", (int)p->len, p->name, p->has_default ? "=" : "");
    if (p->has_default) put_default(f, name, p);
  }
  fprintf(f, ")\"\n");
}

static const char *truth(bool b) { return b ? "true" : "false"; }

int main(int argc, char **argv) {
  FILE *f = argc == 2 ? fopen(argv[1], "wb") : NULL;
  if (!f) die(argc == 2 ? argv[1] : "FILE.h", "cannot be written");
  fprintf(f, "/* op_params.h — names and parameters of lang/ops.def, made by jit/host/gen_ops.c. */\n");
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    OpParam params[OP_MAX_PARAMS];
    bool gives_list;
    const ParamKind unsaid = kind_unsaid(rows[i].family, rows[i].kernel);
    u32 count = parse(rows[i].name, rows[i].signature, unsaid, params, &gives_list);
    put_shown(f, rows[i].name);
    put_signature(f, rows[i].name, params, count);
    fprintf(f, "#define PARAMS_%s %s, %u, %s", rows[i].name, truth(gives_list), count,
            count ? "(const OpParam[]){" : "NULL");
    for (u32 k = 0; k < count; k++) {
      const OpParam *p = &params[k];
      fprintf(f, "%s{\"%.*s\", ", k ? ", " : "", (int)p->len, p->name);
      fprintf(f, p->has_default ? "\"" : "NULL");
      if (p->has_default) put_default(f, rows[i].name, p);
      fprintf(f, "%s, %u, %s, %s, %s, %s, PARAM_%s}", p->has_default ? "\"" : "", p->len, truth(p->has_default),
              truth(p->nil_default), truth(p->keyword_only), truth(p->rest), kinds[p->kind]);
    }
    fprintf(f, "%s\n", count ? "}" : "");
  }
  if (ferror(f) || fclose(f) != 0) die(argv[1], "cannot be written");
  return 0;
}
