/* gen_ops.c — build tool: what the preprocessor cannot make of the names and signatures of lang/ops.def.
 *
 *   gen_ops FILE.h
 *
 * writes for each operation
 *   #define SHOWN_linalg_eigh "linalg.eigh"
 *   #define PARAMS_linalg_eigh 1, (const OpParam[]){{"x", NULL, 1, false, false, false, false}}
 * which lang/ops.c puts into its table: the name as shown; the number of parameters, and the parameters. */
#include "lang/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name, *signature;
} rows[] = {
#define OP(name, signature, ...) {#name, signature},
#include "lang/ops.def"
#undef OP
};

#define OP_MODULE(name) #name,
static const char *const modules[] = {OP_MODULES(OP_MODULE)};
#undef OP_MODULE

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

static u32 parse(const char *name, const char *s, OpParam *out) {
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
    s += p->len;
    if (*s == '=') {
      p->has_default = true;
      p->nil_default = strncmp(s, "=nil", 4) == 0;
      p->initial = s + 1;
      s = skip_default(name, s + 1);
      if (s == p->initial) die(name, "a default that is empty");
    }
    if (strncmp(s, ", ", 2) == 0 && s[2] != ')') s += 2;
    else if (*s != ')') die(name, "its signature is no list of parameters");
  }
  if (s[1]) die(name, "its signature goes on behind )");
  return count;
}

/* The default, up to where the next parameter begins, as a text of C. */
static void put_default(FILE *f, const char *name, const OpParam *p) {
  if (!p->has_default) {
    fprintf(f, "NULL");
    return;
  }
  fputc('"', f);
  for (const char *s = p->initial, *end = skip_default(name, s); s < end; s++)
    fprintf(f, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
  fputc('"', f);
}

static const char *truth(bool b) { return b ? "true" : "false"; }

int main(int argc, char **argv) {
  FILE *f = argc == 2 ? fopen(argv[1], "wb") : NULL;
  if (!f) die(argc == 2 ? argv[1] : "FILE.h", "cannot be written");
  fprintf(f, "/* op_params.h — names and parameters of lang/ops.def, made by jit/host/gen_ops.c. */\n");
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    OpParam params[OP_MAX_PARAMS];
    u32 count = parse(rows[i].name, rows[i].signature, params);
    put_shown(f, rows[i].name);
    fprintf(f, "#define PARAMS_%s %u, %s", rows[i].name, count, count ? "(const OpParam[]){" : "NULL");
    for (u32 k = 0; k < count; k++) {
      const OpParam *p = &params[k];
      fprintf(f, "%s{\"%.*s\", ", k ? ", " : "", (int)p->len, p->name);
      put_default(f, rows[i].name, p);
      fprintf(f, ", %u, %s, %s, %s, %s}", p->len, truth(p->has_default), truth(p->nil_default), truth(p->keyword_only),
              truth(p->rest));
    }
    fprintf(f, "%s\n", count ? "}" : "");
  }
  if (ferror(f) || fclose(f) != 0) die(argv[1], "cannot be written");
  return 0;
}
