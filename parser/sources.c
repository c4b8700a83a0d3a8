/* sources.c — texts of programs, and the places in them that messages show (base.h). */
#include "parser/base.h"
#include "parser/lexer.h"

#include <stdio.h>
#include <string.h>

enum { SWEEP_IDLE = 64, SWEEP_BYTES = 64 << 10, FIRST_SLOTS = 16 };

WeftStatus sources_init(Sources *s, Allocator *alloc) {
  *s = (Sources){.alloc = alloc, .sweep_idle = SWEEP_IDLE, .sweep_bytes = SWEEP_BYTES};
  return WEFT_OK;
}

/* ---- texts by id -------------------------------------------------------------------------------- */

/* Where a file of this id is, or would be. There is a free slot. */
static u32 slot_of(const Sources *s, u32 id) {
  u32 at = id & (s->slot_count - 1);
  while (s->slots[at] && s->slots[at]->id != id) at = (at + 1) & (s->slot_count - 1);
  return at;
}

static SourceFile *find(const Sources *s, u32 id) { return id && s->slot_count ? s->slots[slot_of(s, id)] : NULL; }

static bool grow(Sources *s) {
  Sources larger = *s;
  larger.slot_count = s->slot_count ? 2 * s->slot_count : FIRST_SLOTS;
  larger.slots = mem_alloc_zero(s->alloc, sizeof *s->slots * larger.slot_count);
  if (!larger.slots) return false;
  for (u32 i = 0; i < s->slot_count; i++)
    if (s->slots[i]) larger.slots[slot_of(&larger, s->slots[i]->id)] = s->slots[i];
  mem_free(s->alloc, s->slots, sizeof *s->slots * s->slot_count);
  *s = larger;
  return true;
}

/* Those behind it move up, so that none is cut off from where its search begins. */
static void sources_take_out(Sources *s, u32 at) {
  u32 mask = s->slot_count - 1;
  s->slots[at] = NULL;
  s->count--;
  for (u32 i = (at + 1) & mask; s->slots[i]; i = (i + 1) & mask) {
    SourceFile *f = s->slots[i];
    s->slots[i] = NULL;
    s->slots[slot_of(s, f->id)] = f;
  }
}

/* A file is one block: the struct, where lines start, path, text. */
static size_t block_bytes(const SourceFile *f) {
  return sizeof *f + sizeof(u32) * f->line_count + strlen(f->path) + 1 + f->len + 1;
}

static SourceFile *new_file(Allocator *alloc, const char *path, const char *text, u32 len, Toil *t) {
  u32 lines = 1;
  for (u32 i = 0, stop; i < len; i = stop) {
    stop = len - i < TOIL_BYTES ? len : i + TOIL_BYTES;
    if (stop < len && !toil(t, TOIL_BYTE_STEPS)) return NULL;
    for (u32 k = i; k < stop; k++) lines += text[k] == '\n';
  }
  size_t path_bytes = strlen(path) + 1;
  SourceFile *f = mem_alloc(alloc, sizeof *f + sizeof(u32) * lines + path_bytes + len + 1);
  if (!f) return NULL;
  u32 *starts = (u32 *)(f + 1), line = 1;
  char *copied_path = (char *)(starts + lines), *copied_text = copied_path + path_bytes;
  memcpy(copied_path, path, path_bytes);
  copied_text[len] = 0;
  starts[0] = 0;
  for (u32 i = 0, stop; i < len; i = stop) {
    stop = len - i < TOIL_BYTES ? len : i + TOIL_BYTES;
    if (stop < len && !toil(t, TOIL_BYTE_STEPS)) {
      mem_free(alloc, f, sizeof *f + sizeof(u32) * lines + path_bytes + len + 1);
      return NULL;
    }
    memcpy(copied_text + i, text + i, stop - i);
    for (const char *s = text + i; (s = memchr(s, '\n', (size_t)(text + stop - s))) != NULL; s++)
      starts[line++] = (u32)(s - text) + 1;
  }
  *f = (SourceFile){.path = copied_path, .text = copied_text, .len = len, .line_starts = starts, .line_count = lines,
                    .holders = 1};
  return f;
}

static void free_file(Sources *s, SourceFile *f) { mem_free(s->alloc, f, block_bytes(f)); }

void sources_free(Sources *s) {
  for (u32 i = 0; i < s->slot_count; i++)
    if (s->slots[i]) free_file(s, s->slots[i]);
  mem_free(s->alloc, s->slots, sizeof *s->slots * s->slot_count);
}

u32 sources_add(Sources *s, const char *path, const char *text, size_t len) {
  return sources_add_long(s, path, text, len, NULL);
}

u32 sources_add_long(Sources *s, const char *path, const char *text, size_t len, Toil *t) {
  if (len > (1u << 30)) return 0;
  if (2 * (s->count + 1) > s->slot_count && !grow(s)) return 0;
  SourceFile *f = new_file(s->alloc, path, text, (u32)len, t);
  if (!f) return 0;
  do s->last_id++;
  while (!s->last_id || find(s, s->last_id));
  f->id = s->last_id;
  s->slots[slot_of(s, f->id)] = f;
  s->count++;
  return f->id;
}

void sources_hide(Sources *s, u32 file) {
  SourceFile *f = find(s, file);
  if (f) f->hidden = true;
}

const SourceFile *sources_get(const Sources *s, u32 file) { return find(s, file); }

/* ---- how long they live --------------------------------------------------------------------------- */

void sources_keep(Sources *s, u32 file) {
  SourceFile *f = find(s, file);
  if (!f || f->holders++) return;
  s->idle--;
  s->idle_bytes -= block_bytes(f);
}

void sources_drop(Sources *s, u32 file) {
  SourceFile *f = find(s, file);
  if (!f || --f->holders) return;
  s->idle++;
  s->idle_bytes += block_bytes(f);
}

bool sources_sweep_due(const Sources *s) { return s->idle > s->sweep_idle || s->idle_bytes > s->sweep_bytes; }

void sources_point(Sources *s, u32 file) {
  SourceFile *f = find(s, file);
  if (f) f->pointed = true;
}

void sources_sweep(Sources *s) {
  for (u32 i = 0; i < s->slot_count; i++) {
    while (s->slots[i] && !s->slots[i]->holders && !s->slots[i]->pointed) { /* another may move up to its slot */
      SourceFile *f = s->slots[i];
      s->idle--;
      s->idle_bytes -= block_bytes(f);
      sources_take_out(s, i);
      free_file(s, f);
    }
  }
  for (u32 i = 0; i < s->slot_count; i++)
    if (s->slots[i]) s->slots[i]->pointed = false;
  s->sweep_idle = SWEEP_IDLE + s->count; /* as long as what stays: a sweep costs a constant for each text */
  s->sweep_bytes = SWEEP_BYTES + 2 * s->idle_bytes;
}

/* ---- places ----------------------------------------------------------------------------------------- */

static u32 sources_line_of(const SourceFile *f, u32 offset) { /* 0-based */
  u32 lo = 0, hi = f->line_count;
  while (hi - lo > 1) {
    u32 mid = lo + (hi - lo) / 2;
    if (f->line_starts[mid] <= offset) lo = mid;
    else hi = mid;
  }
  return lo;
}

static u32 code_points(const char *s, u32 n) {
  u32 c = 0;
  for (u32 i = 0; i < n; i++) c += ((u8)s[i] & 0xC0) != 0x80;
  return c;
}

/* ---- columns ---------------------------------------------------------------------------------- */

/* Ranges of code points that a terminal shows in two columns (East Asian Wide and Fullwidth of Unicode 15), and in none
 * (marks that combine with what precedes them, joiners, directions). Both in order. */
typedef struct CodeRange {
  u32 first, last;
} CodeRange;
static const CodeRange wide[] = {
  {0x1100, 0x115F}, {0x231A, 0x231B}, {0x2329, 0x232A}, {0x23E9, 0x23EC}, {0x23F0, 0x23F0}, {0x23F3, 0x23F3},
  {0x25FD, 0x25FE}, {0x2614, 0x2615}, {0x2648, 0x2653}, {0x267F, 0x267F}, {0x2693, 0x2693}, {0x26A1, 0x26A1},
  {0x26AA, 0x26AB}, {0x26BD, 0x26BE}, {0x26C4, 0x26C5}, {0x26CE, 0x26CE}, {0x26D4, 0x26D4}, {0x26EA, 0x26EA},
  {0x26F2, 0x26F3}, {0x26F5, 0x26F5}, {0x26FA, 0x26FA}, {0x26FD, 0x26FD}, {0x2705, 0x2705}, {0x270A, 0x270B},
  {0x2728, 0x2728}, {0x274C, 0x274C}, {0x274E, 0x274E}, {0x2753, 0x2755}, {0x2757, 0x2757}, {0x2795, 0x2797},
  {0x27B0, 0x27B0}, {0x27BF, 0x27BF}, {0x2B1B, 0x2B1C}, {0x2B50, 0x2B50}, {0x2B55, 0x2B55}, {0x2E80, 0x303E},
  {0x3041, 0x4DBF}, {0x4E00, 0xA4CF}, {0xA960, 0xA97F}, {0xAC00, 0xD7A3}, {0xF900, 0xFAFF}, {0xFE10, 0xFE19},
  {0xFE30, 0xFE6F}, {0xFF01, 0xFF60}, {0xFFE0, 0xFFE6}, {0x16FE0, 0x18DFF}, {0x1AFF0, 0x1B2FF}, {0x1F004, 0x1F004},
  {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F200, 0x1F265}, {0x1F300, 0x1F320},
  {0x1F32D, 0x1F335}, {0x1F337, 0x1F37C}, {0x1F37E, 0x1F393}, {0x1F3A0, 0x1F3CA}, {0x1F3CF, 0x1F3D3},
  {0x1F3E0, 0x1F3F0}, {0x1F3F4, 0x1F3F4}, {0x1F3F8, 0x1F43E}, {0x1F440, 0x1F440}, {0x1F442, 0x1F4FC},
  {0x1F4FF, 0x1F53D}, {0x1F54B, 0x1F54E}, {0x1F550, 0x1F567}, {0x1F57A, 0x1F57A}, {0x1F595, 0x1F596},
  {0x1F5A4, 0x1F5A4}, {0x1F5FB, 0x1F64F}, {0x1F680, 0x1F6C5}, {0x1F6CC, 0x1F6CC}, {0x1F6D0, 0x1F6D2},
  {0x1F6D5, 0x1F6D7}, {0x1F6DC, 0x1F6DF}, {0x1F6EB, 0x1F6EC}, {0x1F6F4, 0x1F6FC}, {0x1F7E0, 0x1F7EB},
  {0x1F7F0, 0x1F7F0}, {0x1F90C, 0x1F93A}, {0x1F93C, 0x1F945}, {0x1F947, 0x1F9FF}, {0x1FA70, 0x1FAFF},
  {0x20000, 0x3FFFD},
};
static const CodeRange narrow[] = {
  {0x300, 0x36F}, {0x483, 0x489}, {0x591, 0x5BD}, {0x610, 0x61A}, {0x64B, 0x65F}, {0x900, 0x902}, {0x93C, 0x93C},
  {0x941, 0x948}, {0x94D, 0x94D}, {0xE31, 0xE31}, {0xE34, 0xE3A}, {0xE47, 0xE4E}, {0x1160, 0x11FF}, {0x1AB0, 0x1AFF},
  {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F},
  {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF},
};

static bool is_in(const CodeRange *ranges, u32 count, u32 code) {
  u32 lo = 0, hi = count;
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    if (ranges[mid].last < code) lo = mid + 1;
    else hi = mid;
  }
  return lo < count && ranges[lo].first <= code;
}

u32 text_columns(const char *s, u32 n) {
  u32 columns = 0, code = 0;
  for (u32 i = 0, step; i < n; i += step) {
    step = utf8_decode(s, n, i, &code);
    if (!step) step = 1; /* no UTF-8: a column for each byte */
    else if (code >= 0x300 && is_in(narrow, COUNT_OF(narrow), code)) continue;
    else if (code >= 0x1100 && is_in(wide, COUNT_OF(wide), code)) columns++;
    columns++;
  }
  return columns;
}

void sources_locate(const Sources *s, Span at, u32 *line, u32 *col) {
  *line = *col = 0;
  const SourceFile *f = sources_get(s, at.file);
  if (!f) return;
  u32 start = at.start > f->len ? f->len : at.start;
  u32 l = sources_line_of(f, start);
  *line = l + 1;
  *col = code_points(f->text + f->line_starts[l], start - f->line_starts[l]) + 1;
}

/* Of a line of more than so many bytes only what is near the place is shown. */
enum { LINE_MOST = 200, LINE_BEFORE = 80 };
static bool is_inside_of_code_point(const SourceFile *f, u32 i) { return ((u8)f->text[i] & 0xC0) == 0x80; }

void sources_show(const Sources *s, Span at, Buf *out) {
  static const char cut[] = "…";
  const SourceFile *f = sources_get(s, at.file);
  if (!f) return;
  u32 line, col;
  sources_locate(s, at, &line, &col);
  if (f->hidden) {
    buf_printf(out, "  --> %s:%u:%u\n", f->path, line, col);
    return;
  }
  u32 begin = f->line_starts[line - 1];
  u32 end = line < f->line_count ? f->line_starts[line] - 1 : f->len;
  if (end > begin && f->text[end - 1] == '\r') end--;
  u32 start = at.start > end ? end : at.start;
  u32 stop = at.start + at.len > end ? end : at.start + at.len;
  u32 from = end - begin > LINE_MOST && start - begin > LINE_BEFORE ? start - LINE_BEFORE : begin,
      to = end - from > LINE_MOST ? from + LINE_MOST : end;
  while (from > begin && is_inside_of_code_point(f, from)) from--;
  while (to < end && is_inside_of_code_point(f, to)) to++;
  if (stop > to) stop = to;
  char number[16];
  int width = snprintf(number, sizeof number, "%u", line);
  buf_printf(out, "  --> %s:%u:%u\n%*s |\n%s | %s", f->path, line, col, width, "", number, from > begin ? cut : "");
  for (u32 i = from, step; i < to; i += step) { /* what is shown is UTF-8 and one line, whatever the text is */
    u32 code;
    step = utf8_decode(f->text, f->len, i, &code);
    if (step && code >= 32) buf_put(out, f->text + i, step);
    else buf_putc(out, step ? ' ' : '?');
    if (!step) step = 1;
  }
  buf_printf(out, "%s\n%*s | %*s", to < end ? cut : "", width, "",
             (int)(text_columns(f->text + from, start - from) + (from > begin)), "");
  u32 carets = stop > start ? text_columns(f->text + start, stop - start) : 1;
  if (!carets) carets = 1;
  for (u32 i = 0; i < carets; i++) buf_putc(out, '^');
  buf_putc(out, '\n');
}
