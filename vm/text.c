/* text.c — immutable UTF-8 text: making, joining, slicing by code point. */
#define _GNU_SOURCE /* memmem */
#include <stdio.h>
#include <string.h>

#include "vm/alloc.h"

enum { TEXT_GROWS = 1024 }; /* bytes from which a text is enlarged in place */

/* Of eight bytes of UTF-8: those that begin a code point, as a 1 in each. */
static u64 begins(const char *s) {
  u64 w;
  memcpy(&w, s, sizeof w);
  return (~(w >> 7) | w >> 6) & 0x0101010101010101;
}

u32 text_count(const char *s, size_t len) {
  enum { FOUR = 4 * sizeof(u64) };
  u32 n = 0;
  size_t i = 0;
  for (u64 w[4]; i + FOUR <= len; i += FOUR) { /* all of ASCII, as most texts are */
    memcpy(w, s + i, sizeof w);
    if ((w[0] | w[1] | w[2] | w[3]) & 0x8080808080808080) break;
    n += FOUR;
  }
  for (; i + 8 <= len; i += 8) n += (u32)(begins(s + i) * 0x0101010101010101 >> 56);
  for (; i < len; i++) n += ((u8)s[i] & 0xC0) != 0x80;
  return n;
}

u32 text_behind(const Text *t, u32 at, u32 index) {
  if (t->len == t->count) return index < t->len - at ? at + index : t->len;
  for (u32 n; t->len - at >= 8 && (n = (u32)(begins(t->data + at) * 0x0101010101010101 >> 56)) <= index; at += 8)
    index -= n;
  for (; at < t->len; at++) {
    if (((u8)t->data[at] & 0xC0) == 0x80) continue;
    if (index-- == 0) break;
  }
  return at;
}

static Text *text_room(Vm *vm, size_t len, Value *out) {
  if (len >= UINT32_MAX - 64) {
    (void)vm_error(vm, EK_limit, "text of %zu bytes is too long", len);
    return NULL;
  }
  Text *t = obj_alloc(vm, sizeof *t + len + 1);
  if (!t) {
    (void)vm_error_memory(vm);
    return NULL;
  }
  t->head = (Obj){1, 0};
  t->len = (u32)len;
  t->data[len] = 0;
  *out = value_obj(V_TEXT, t);
  return t;
}

bool text_new(Vm *vm, const char *s, size_t len, Value *out) {
  Value *once = len == 1 && (u8)*s < COUNT_OF(vm->letters) ? &vm->letters[(u8)*s] : NULL;
  if (once && once->kind) {
    *out = value_keep(*once);
    return true;
  }
  Text *t = text_room(vm, len, out);
  if (!t) return false;
  if (once) *once = value_keep(*out);
  if (len) memcpy(t->data, s, len);
  t->count = text_count(t->data, len);
  return true;
}

/* Of the program's own, which may be long: in parts of a millisecond or so. False: it is to end, and t is dropped. */
enum { PART_BYTES = TEXT_PART, PART_POINTS = 1 << 19 };

WeftStatus text_count_long(Vm *vm, const char *s, size_t len, u32 *count) {
  for (; len > PART_BYTES; s += PART_BYTES, len -= PART_BYTES) {
    *count += text_count(s, PART_BYTES);
    if (vm_look(vm) != WEFT_OK) return WEFT_ERROR;
  }
  *count += text_count(s, len);
  return WEFT_OK;
}

WeftStatus text_compare(Vm *vm, const char *a, const char *b, size_t len, int *out) {
  for (; len > PART_BYTES; a += PART_BYTES, b += PART_BYTES, len -= PART_BYTES) {
    if ((*out = memcmp(a, b, PART_BYTES)) != 0) return WEFT_OK;
    if (vm_look(vm) != WEFT_OK) return WEFT_ERROR;
  }
  *out = memcmp(a, b, len);
  return WEFT_OK;
}

static bool fill(Vm *vm, Text *t, char *to, const char *from, size_t n) {
  for (size_t done = 0; done < n;) {
    const size_t part = n - done < PART_BYTES ? n - done : PART_BYTES;
    memcpy(to + done, from + done, part);
    done += part;
    if (part < PART_BYTES || vm_look(vm) == WEFT_OK) continue;
    value_drop(vm, value_obj(V_TEXT, t));
    return false;
  }
  return true;
}

bool text_of_program(Vm *vm, const char *s, size_t len, Value *out) {
  if (len < PART_BYTES) return text_new(vm, s, len, out);
  Text *t = text_room(vm, len, out);
  if (!t) return false;
  t->count = 0;
  if (!fill(vm, t, t->data, s, len)) return false;
  if (text_count_long(vm, t->data, len, &t->count) == WEFT_OK) return true;
  value_drop(vm, *out);
  return false;
}

WeftStatus text_find(Vm *vm, const char *s, size_t n, const char *part, size_t m, const char **hit) {
  if (LIKELY(n <= PART_BYTES)) {
    *hit = memmem(s, n, part, m);
    return WEFT_OK;
  }
  const size_t each = m > PART_BYTES / 4 ? 4 * m : PART_BYTES; /* linear, in the part that is searched, too */
  for (; (*hit = memmem(s, n < each ? n : each, part, m)) == NULL && n > each; s += each - m + 1, n -= each - m + 1)
    if (vm_look(vm) != WEFT_OK) return WEFT_ERROR;
  return WEFT_OK;
}

bool text_repeat(Vm *vm, const Text *t, u64 n, Value *out) {
  size_t len = t->len && n > UINT32_MAX / t->len ? UINT32_MAX : (size_t)t->len * n;
  if (len <= 1) return text_new(vm, t->data, len, out);
  Text *to = text_room(vm, len, out);
  if (!to) return false;
  to->count = 0;
  if (!fill(vm, to, to->data, t->data, t->len)) return false;
  for (size_t done = t->len; done < len;) { /* twice as much each time */
    size_t part = done < len - done ? done : len - done;
    if (!fill(vm, to, to->data + done, to->data, part)) return false;
    done += part;
  }
  to->count = t->count * (u32)n;
  return true;
}

u32 number_digits(Value v, char *out) {
  char digits[20];
  u32 at = sizeof digits;
  u64 u = v.u;
  bool negative = v.i < 0 && !num_is_huge(v);
  if (negative) u = 0 - u;
  do digits[--at] = (char)('0' + u % 10);
  while (u /= 10);
  *out = '-';
  memcpy(out + negative, digits + at, sizeof digits - at);
  return (u32)sizeof digits - at + negative;
}

bool text_printf(Vm *vm, Value *out, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  Text *t = n < 0 ? NULL : text_room(vm, (size_t)n, out);
  if (!t) return false;
  va_start(ap, fmt);
  vsnprintf(t->data, (size_t)n + 1, fmt, ap);
  va_end(ap);
  t->count = text_count(t->data, (size_t)n);
  return true;
}

bool text_valid(const char *s, size_t len) {
  const u8 *p = (const u8 *)s, *end = p + len;
  while (p < end) {
    u32 c = *p++;
    if (c < 0x80) continue;
    u32 more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
    if (c < 0xC2 || c > 0xF4 || (u32)(end - p) < more) return false;
    u32 point = c & (0x3Fu >> more);
    for (u32 i = 0; i < more; i++) {
      if ((p[i] & 0xC0) != 0x80) return false;
      point = point << 6 | (p[i] & 0x3F);
    }
    p += more;
    if (more == 2 && (point < 0x800 || (point >= 0xD800 && point < 0xE000))) return false;
    if (more == 3 && (point < 0x10000 || point > 0x10FFFF)) return false;
  }
  return true;
}

u32 text_offset(const Text *t, u32 index) {
  if (t->len == t->count || index >= t->count) return index >= t->count ? t->len : index;
  return text_behind(t, 0, index);
}

enum { PLACES_STEP = 64, PLACES_LEAST = 256 }; /* code points between two places; of the shortest text that has them */

enum { BLOCK = 16 }; /* not a threshold: code points converted at a time, so that the compiler takes vectors */

static u32 point_bytes(u8 first);

enum { PLACES_LOOK = PART_POINTS / PLACES_STEP };

bool text_place(Vm *vm, const Text *t, u32 index, u32 *out) {
  TextPlaces *p = &vm->text_places;
  if (t->len == t->count || t->count < PLACES_LEAST || index >= t->count) return *out = text_offset(t, index), true;
  const u32 wanted = index / PLACES_STEP, need = t->count / PLACES_STEP + 1;
  if (p->text != t) p->text = t, p->count = 0;
  if (p->cap < need) { /* without it, it takes longer */
    u32 *at = mem_resize(&vm->alloc, p->at, sizeof *at * p->cap, sizeof *at * need);
    if (!at) return *out = text_offset(t, index), true;
    p->at = at;
    p->cap = need;
  }
  if (!p->count) p->at[p->count++] = 0;
  for (; p->count <= wanted; p->count++) {
    p->at[p->count] = text_behind(t, p->at[p->count - 1], PLACES_STEP);
    if (p->count % PLACES_LOOK == 0 && vm_look(vm) != WEFT_OK) return false;
  }
  *out = p->at[wanted];
  for (u32 i = wanted * PLACES_STEP; i < index; i++) *out += point_bytes((u8)t->data[*out]);
  return true;
}

void text_forget(Vm *vm, const Text *t) {
  if (vm->text_places.text == t) vm->text_places.text = NULL;
  if (t->count < POINTS_LEAST) return;
  for (u32 i = 0; i < POINTS_KEPT; i++) {
    TextPoints *p = &vm->text_points[i];
    if (p->text != t) continue;
    value_drop(vm, p->column);
    *p = (TextPoints){.column = value_nil()};
  }
}

static u32 point_bytes(u8 first) { return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

void text_points(const Text *t, i64 *out) {
  const u8 *p = (const u8 *)t->data;
  const u32 count = t->count;
  if (t->len == count) {
    u32 at = 0;
    for (; count - at >= BLOCK; at += BLOCK)
      for (u32 i = 0; i < BLOCK; i++) out[at + i] = p[at + i];
    for (; at < count; at++) out[at] = p[at];
    return;
  }
  for (u32 i = 0; i < count; i++) {
    u32 n = point_bytes(*p), point = n == 1 ? *p : *p & (0x7Fu >> n);
    p++;
    while (--n > 0) point = point << 6 | (*p++ & 0x3Fu);
    out[i] = point;
  }
}

/* The bytes of a code point: how many there are. */
static u32 put_point(char *s, u32 point) {
  u32 n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  for (u32 i = n; i-- > 1; point >>= 6) s[i] = (char)(0x80 | (point & 0x3F));
  s[0] = (char)(n == 1 ? point : (0xF00u >> n & 0xF0) | point);
  return n;
}

bool text_of_point(Vm *vm, u32 point, Value *out) {
  char s[4];
  return text_new(vm, s, put_point(s, point), out);
}

bool text_of_points(Vm *vm, const i64 *points, u32 count, Value *out) {
  size_t len = count;
  char *s;
  u32 at = 0;
  for (u32 from = 0; from < count; from = at) {
    const u32 stop = count - from < PART_POINTS ? count : from + PART_POINTS;
    u64 all = 0, some[BLOCK] = {0};
    for (at = from; stop - at >= BLOCK; at += BLOCK)
      for (u32 i = 0; i < BLOCK; i++) some[i] |= (u64)points[at + i];
    for (u32 i = 0; i < BLOCK; i++) all |= some[i];
    for (; at < stop; at++) all |= (u64)points[at];
    for (u32 i = from; all >= 0x80 && i < stop; i++)
      len += (points[i] >= 0x80) + (points[i] >= 0x800) + (points[i] >= 0x10000);
    if (stop < count && vm_look(vm) != WEFT_OK) return false;
  }
  Text *t = text_room(vm, len, out);
  if (!t) return false;
  s = t->data;
  at = 0;
  t->count = count;
  bool ok = true;
  for (u32 from = 0; from < count && ok; from = at) {
    const u32 stop = count - from < PART_POINTS ? count : from + PART_POINTS;
    at = from;
    for (; len == count && stop - at >= BLOCK; at += BLOCK)
      for (u32 i = 0; i < BLOCK; i++) s[at + i] = (char)points[at + i];
    for (; len == count && at < stop; at++) s[at] = (char)points[at];
    for (; len != count && at < stop; at++) s += put_point(s, (u32)points[at]);
    ok = stop == count || vm_look(vm) == WEFT_OK;
  }
  if (!ok) value_drop(vm, *out);
  return ok;
}

bool text_slice(Vm *vm, Value text, i64 start, i64 stop, i64 step, Value *out) {
  const Text *t = text.text;
  if (step == 1) {
    if (stop <= start) return text_new(vm, "", 0, out);
    u32 from = 0, to = (u32)stop;
    if (!text_place(vm, t, (u32)start, &from)) return false;
    if (t->len != t->count) {
      to = from;
      for (i64 left = stop - start; left > 0; left -= PART_POINTS) {
        to = text_behind(t, to, left < PART_POINTS ? (u32)left : PART_POINTS);
        if (left > PART_POINTS && vm_look(vm) != WEFT_OK) return false;
      }
    }
    return text_of_program(vm, t->data + from, to - from, out);
  }
  Range r = {.start = start, .stop = stop, .step = step};
  u64 count = range_count(&r);
  u32 *at = NULL; /* byte offset of each code point, when not ASCII */
  bool ok = true;
  if (t->len != t->count) {
    at = mem_alloc(&vm->alloc, sizeof *at * ((size_t)t->count + 1));
    if (!at) return (void)vm_error_memory(vm), false;
    u32 n = 0;
    for (u32 i = 0; i < t->len && ok; i += point_bytes((u8)t->data[i])) {
      at[n++] = i;
      if (n % PART_POINTS == 0) ok = vm_look(vm) == WEFT_OK;
    }
    at[ok ? n : 0] = t->len;
  }
  size_t len = 0;
  for (u64 k = 0; at && k < count && ok; k++) {
    i64 i = start + (i64)k * step;
    len += at[i + 1] - at[i];
    if ((k + 1) % PART_POINTS == 0) ok = vm_look(vm) == WEFT_OK;
  }
  Text *made = ok ? text_room(vm, at ? len : count, out) : NULL;
  if (made) {
    char *p = made->data;
    made->count = (u32)count;
    for (u64 k = 0; k < count && ok; k++) {
      i64 i = start + (i64)k * step;
      if ((k + 1) % PART_POINTS == 0) ok = vm_look(vm) == WEFT_OK;
      u32 from = at ? at[i] : (u32)i, n = at ? at[i + 1] - at[i] : 1;
      memcpy(p, t->data + from, n);
      p += n;
    }
    if (!ok) value_drop(vm, *out);
  }
  if (at) mem_free(&vm->alloc, at, sizeof *at * ((size_t)t->count + 1));
  return ok && made;
}

/* Large texts grow where they lie, so that building one piece by piece does not copy it each time; small ones in the
 * rest of their step. */
bool text_append(Vm *vm, Value *text, const Text *more) {
  Text *t = text->text;
  size_t old = sizeof *t + t->len + 1, len = (size_t)t->len + more->len,
      room = (old + SMALL_STEP - 1) / SMALL_STEP * SMALL_STEP;
  if (t->head.refs == 1 && old <= SMALL_MAX && sizeof *t + len < room && t != more) {
    text_unname(vm, t);
    memcpy(t->data + t->len, more->data, (size_t)more->len + 1);
    t->len = (u32)len;
    t->count += more->count;
    return true;
  }
  if (t->head.refs != 1 || old <= SMALL_MAX || old < TEXT_GROWS || len >= UINT32_MAX - 64 || t == more) {
    Value parts[2] = {*text, {.kind = V_TEXT, .text = (Text *)more}}, joined;
    if (!text_concat(vm, parts, 2, &joined)) return false;
    value_drop(vm, *text);
    *text = joined;
    return true;
  }
  text_forget(vm, t);
  Text *grown = mem_resize(&vm->alloc, t, old, sizeof *t + len + 1);
  if (!grown) return (void)vm_error_memory(vm), false;
  text_unname(vm, grown);
  memcpy(grown->data + grown->len, more->data, (size_t)more->len + 1);
  grown->len = (u32)len;
  grown->count += more->count;
  text->text = grown;
  return true;
}

bool text_concat(Vm *vm, const Value *parts, u32 count, Value *out) {
  size_t len = 0;
  u32 points = 0;
  for (u32 i = 0; i < count; i++) {
    len += parts[i].text->len;
    points += parts[i].text->count;
  }
  Text *t = text_room(vm, len, out);
  if (!t) return false;
  char *p = t->data;
  t->count = points;
  for (u32 i = 0; i < count; i++) {
    if (!fill(vm, t, p, parts[i].text->data, parts[i].text->len)) return false;
    p += parts[i].text->len;
  }
  return true;
}
