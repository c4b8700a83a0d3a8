/* date.c — times as ISO 8601 texts and as their parts, in the Gregorian calendar: UTC, the local zone, or an offset. A
 * time is a number: seconds since the start of 1970, UTC, leap seconds not counted. */
#include "stdlib/array/make.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { DAY = 86400, HOUR = 3600, MINUTE = 60, YEAR_LEAST = 1, YEAR_MOST = 9999, MICRO = 1000000,
       BETWEEN_POLLS = 1024 /* items of a column */ };

typedef struct Moment {
  i64 year;
  u32 month, day, hour, minute, second, micro;
  u32 weekday, yearday; /* Monday is 1; the 1st of January is 1 */
  i64 offset;           /* seconds east of UTC */
} Moment;

/* Days since 1970 of a date; years begin in March here, so that February is last. */
static i64 days_of(i64 year, u32 month, u32 day) {
  const i64 y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400;
  const u32 of_era = (u32)(y - era * 400), from_march = (month + 9) % 12;
  return era * 146097 + (i64)(of_era * 365 + of_era / 4 - of_era / 100 + (153 * from_march + 2) / 5 + day - 1) - 719468;
}

static bool is_leap(i64 year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

static u32 month_days(i64 year, u32 month) {
  static const u8 days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return days[month - 1] + (month == 2 && is_leap(year));
}

/* Seconds since 1970, as if they were UTC, to the calendar. */
static void moment_of(i64 seconds, Moment *m) {
  const i64 days = seconds >= 0 ? seconds / DAY : -((-seconds + DAY - 1) / DAY), z = days + 719468;
  const i64 era = (z >= 0 ? z : z - 146096) / 146097;
  const u32 of_era = (u32)(z - era * 146097);
  const u32 year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const u32 of_year = of_era - (365 * year + year / 4 - year / 100), from_march = (5 * of_year + 2) / 153;
  const u32 left = (u32)(seconds - days * DAY);
  m->day = of_year - (153 * from_march + 2) / 5 + 1;
  m->month = from_march < 10 ? from_march + 3 : from_march - 9;
  m->year = (i64)year + era * 400 + (m->month <= 2);
  m->hour = left / HOUR;
  m->minute = left / MINUTE % 60;
  m->second = left % 60;
  m->weekday = (u32)(((days + 3) % 7 + 7) % 7 + 1);
  m->yearday = (u32)(days - days_of(m->year, 1, 1) + 1);
}

/* ---- zones ----------------------------------------------------------------------------------- */

typedef struct Zone {
  bool local;
  i64 offset; /* where it is not */
} Zone;

static bool two(const char *s, const char *end, u32 *out) {
  if (end - s < 2 || s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9') return false;
  *out = (u32)(s[0] - '0') * 10 + (u32)(s[1] - '0');
  return true;
}

/* +hh, +hhmm or +hh:mm, which *s is put behind. */
static bool take_offset(const char **s, const char *end, i64 *out) {
  u32 hours, minutes = 0;
  if (*s == end || (**s != '+' && **s != '-') || !two(*s + 1, end, &hours)) return false;
  const bool west = **s == '-';
  const char *at = *s + 3;
  if (at < end && *at == ':') {
    if (!two(at + 1, end, &minutes)) return false;
    at += 3;
  } else if (two(at, end, &minutes)) {
    at += 2;
  }
  if (hours > 23 || minutes > 59) return false;
  *out = (west ? -1 : 1) * (i64)(hours * HOUR + minutes * MINUTE);
  *s = at;
  return true;
}

static WeftStatus zone_of(Vm *vm, u32 op, u32 param, Value v, Zone *out) {
  *out = (Zone){0};
  if (!args_given(v)) return WEFT_OK;
  if (v.kind != V_TEXT) return args_error(vm, op, param, v, "\"utc\", \"local\" or an offset such as \"+01:00\"");
  const char *s = v.text->data, *end = s + v.text->len;
  if (strcmp(s, "utc") == 0) return WEFT_OK;
  out->local = strcmp(s, "local") == 0;
  if (out->local || (take_offset(&s, end, &out->offset) && s == end)) return WEFT_OK;
  if (strchr(v.text->data, '/')) /* "Europe/Berlin" */
    return vm_error(vm, EK_unsupported, "%s: zones by name are not supported, as \"%.40s\"; zone is \"utc\", "
                    "\"local\" (which TZ of the environment says) or an offset such as \"+01:00\"", op_name(op),
                    v.text->data);
  return vm_error(vm, EK_value, "%s: zone must be \"utc\", \"local\" or an offset such as \"+01:00\", got \"%.40s\"",
                  op_name(op), v.text->data);
}

/* Seconds east of UTC at a time. */
static i64 offset_at(const Zone *z, i64 seconds) {
  struct tm tm;
  const time_t t = (time_t)seconds;
  if (!z->local) return z->offset;
  return localtime_r(&t, &tm) ? (i64)tm.tm_gmtoff : 0;
}

/* Of a time on the clocks of a zone. Where clocks are put back and show it twice, the first; where they skip it, as if
 * they had not been put forward yet. */
static i64 offset_on_clocks(const Zone *z, i64 clock) {
  const i64 before = offset_at(z, clock - DAY), after = offset_at(z, clock + DAY);
  if (offset_at(z, clock - before) == before) return before;
  return offset_at(z, clock - after) == after ? after : before;
}

static const char *const month_names[] = {"January", "February", "March", "April", "May", "June", "July", "August",
                                          "September", "October", "November", "December"};
static const char *const day_names[] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct Reading {
  const char *s, *end;
} Reading;

static bool digits(Reading *r, u32 n, u32 *out) {
  u32 v = 0;
  if (r->end - r->s < (i64)n) return false;
  for (u32 i = 0; i < n; i++) {
    if (r->s[i] < '0' || r->s[i] > '9') return false;
    v = v * 10 + (u32)(r->s[i] - '0');
  }
  r->s += n;
  *out = v;
  return true;
}

static bool sign(Reading *r, char c) {
  if (r->s == r->end || *r->s != c) return false;
  r->s++;
  return true;
}

/* hh, hh:mm or hh:mm:ss with a fraction; without the colons where the date had no hyphens. */
static const char *read_clock(Reading *r, bool plain, Moment *m, f64 *fraction) {
  static const char broken[] = "its time is broken";
  *fraction = 0;
  if (!digits(r, 2, &m->hour)) return broken;
  const char *more = r->s;
  if (plain ? digits(r, 2, &m->minute) : sign(r, ':') && digits(r, 2, &m->minute)) {
    more = r->s;
    if (plain ? digits(r, 2, &m->second) : sign(r, ':') && digits(r, 2, &m->second)) {
      more = r->s;
      if (sign(r, '.') || sign(r, ',')) {
        f64 scale = 1, whole = 0;
        u32 n = 0;
        for (; r->s < r->end && *r->s >= '0' && *r->s <= '9'; r->s++, n++)
          if (n < 15) whole = whole * 10 + (*r->s - '0'), scale *= 10;
        if (!n) return broken;
        *fraction = whole / scale;
        more = r->s;
      }
    }
  }
  if (r->s != more) return broken;
  const bool midnight = m->hour == 24 && !m->minute && !m->second && *fraction == 0;
  if ((m->hour > 23 && !midnight) || m->minute > 59 || m->second > 59) return "its time is out of range";
  return NULL;
}

/* NULL, or what is wrong; *zoned: it said its offset. */
static const char *read_date(Reading *r, Moment *m, f64 *fraction, bool *zoned) {
  static const char broken[] = "its date is broken";
  u32 year, month = 1, day = 1;
  *fraction = 0;
  *zoned = false;
  if (!digits(r, 4, &year)) return broken;
  const bool plain = r->s < r->end && *r->s >= '0' && *r->s <= '9';
  if (plain ? !digits(r, 2, &month) || !digits(r, 2, &day) : sign(r, '-') && !digits(r, 2, &month)) return broken;
  if (!plain && r->s < r->end && *r->s == '-' && (!sign(r, '-') || !digits(r, 2, &day))) return broken;
  if (year < YEAR_LEAST || month < 1 || month > 12 || day < 1 || day > month_days(year, month))
    return "its date is out of range";
  m->year = year;
  m->month = month;
  m->day = day;
  if (r->s < r->end && (*r->s == 'T' || *r->s == 't' || *r->s == ' ')) {
    r->s++;
    const char *why = read_clock(r, plain, m, fraction);
    if (why) return why;
    *zoned = sign(r, 'Z') || sign(r, 'z');
    m->offset = 0;
    if (!*zoned && r->s < r->end) {
      if (!take_offset(&r->s, r->end, &m->offset)) return "its zone is broken";
      *zoned = true;
    }
  }
  return r->s == r->end ? NULL : broken;
}

/* ---- reading by a pattern -------------------------------------------------------------------- */

typedef struct Fields {
  Moment m;
  f64 fraction;
  bool afternoon, twelve, zoned;
} Fields;

static void skip_blanks(Reading *r) {
  while (r->s < r->end && (*r->s == ' ' || (*r->s >= '\t' && *r->s <= '\r'))) r->s++;
}

/* One to `most` digits, from `least` on. */
static bool number_in(Reading *r, u32 digits_most, u32 least, u32 most, u32 *out) {
  u32 v = 0, n = 0;
  for (; n < digits_most && r->s < r->end && *r->s >= '0' && *r->s <= '9'; n++) v = v * 10 + (u32)(*r->s++ - '0');
  *out = v;
  return n && v >= least && v <= most;
}

static bool same_letters(const Reading *r, const char *word, size_t n) {
  return (size_t)(r->end - r->s) >= n && strncasecmp(r->s, word, n) == 0;
}

/* A name, or its first three letters, in any case: its number from 1. */
static bool name_in(Reading *r, const char *const *names, u32 count, u32 *out) {
  for (u32 i = 0; i < count; i++) {
    const size_t whole = strlen(names[i]);
    if (!same_letters(r, names[i], 3)) continue;
    r->s += same_letters(r, names[i], whole) ? whole : 3;
    *out = i + 1;
    return true;
  }
  return false;
}

static bool read_by(Reading *r, const char *pattern, const char *end, Fields *f, char *unknown);

/* What one sign of the pattern stands for; *unknown: it is none. */
static bool read_part(Reading *r, char sign, Fields *f, char *unknown) {
  Moment *m = &f->m;
  u32 v = 0;
  const char *const more = sign == 'F' ? "%Y-%m-%d" : sign == 'T' || sign == 'X' ? "%H:%M:%S" : sign == 'R' ? "%H:%M"
                         : sign == 'D' || sign == 'x' ? "%m/%d/%y" : sign == 'r' ? "%I:%M:%S %p"
                         : sign == 'c' ? "%a %b %e %H:%M:%S %Y" : NULL;
  if (more) return read_by(r, more, more + strlen(more), f, unknown);
  switch (sign) {
    case 'Y':
      if (!number_in(r, 4, YEAR_LEAST, YEAR_MOST, &v)) return false;
      m->year = v;
      return true;
    case 'y':
      if (!number_in(r, 2, 0, 99, &v)) return false;
      m->year = v < 69 ? 2000 + v : 1900 + v;
      return true;
    case 'm': return number_in(r, 2, 1, 12, &m->month);
    case 'e': skip_blanks(r); return number_in(r, 2, 1, 31, &m->day);
    case 'd': return number_in(r, 2, 1, 31, &m->day);
    case 'j': return number_in(r, 3, 1, 366, &m->yearday);
    case 'H': return number_in(r, 2, 0, 23, &m->hour);
    case 'I':
      f->twelve = true;
      return number_in(r, 2, 1, 12, &m->hour);
    case 'M': return number_in(r, 2, 0, 59, &m->minute);
    case 'S': return number_in(r, 2, 0, 59, &m->second);
    case 'f': {
      f64 scale = 1, whole = 0;
      const char *from = r->s;
      for (; r->s < r->end && *r->s >= '0' && *r->s <= '9'; r->s++)
        if (r->s - from < 15) whole = whole * 10 + (*r->s - '0'), scale *= 10;
      f->fraction = whole / scale;
      return r->s > from;
    }
    case 'p':
      f->afternoon = same_letters(r, "PM", 2);
      if (!f->afternoon && !same_letters(r, "AM", 2)) return false;
      r->s += 2;
      return true;
    case 'A': case 'a': return name_in(r, day_names, 7, &v);
    case 'B': case 'b': case 'h': return name_in(r, month_names, 12, &m->month);
    case 'z':
      f->zoned = true;
      m->offset = 0;
      return same_letters(r, "Z", 1) ? r->s++, true : take_offset(&r->s, r->end, &m->offset);
    case 'n': case 't': skip_blanks(r); return true;
    case '%': return r->s < r->end && *r->s++ == '%';
    default: *unknown = sign; return false;
  }
}

/* Blanks of the pattern stand for any blanks; what is no sign stands for itself. */
static bool read_by(Reading *r, const char *pattern, const char *end, Fields *f, char *unknown) {
  for (const char *s = pattern; s < end; s++) {
    if (*s == ' ') skip_blanks(r);
    else if (*s == '%') {
      const char sign = s + 1 < end ? *++s : 0;
      if (!read_part(r, sign, f, unknown)) return false;
    } else if (r->s == r->end || *r->s++ != *s) {
      return false;
    }
  }
  return true;
}

/* The time that the text says by the pattern, on its clocks. A part that the pattern leaves out is that of the start of
 * 1970. */
static WeftStatus parse_by(Vm *vm, const Text *t, const Text *pattern, Moment *m, f64 *fraction, bool *zoned) {
  Fields f = {.m = {.year = 1970, .month = 1, .day = 1}};
  Reading r = {t->data, t->data + t->len};
  char unknown = 1;
  const bool fits = read_by(&r, pattern->data, pattern->data + pattern->len, &f, &unknown);
  if (!fits && unknown != 1)
    return vm_error(vm, EK_value, "date.parse: pattern: %%%.1s is unknown; %%a %%A %%b %%B %%c %%d %%D %%e %%f %%F %%h "
                                  "%%H %%I %%j %%m %%M %%n %%p %%r %%R %%S %%t %%T %%x %%X %%y %%Y %%z %%%% are",
                    (u8)unknown < 0x80 ? &unknown : "");
  if (f.twelve) f.m.hour = f.m.hour % 12 + 12 * f.afternoon;
  const u32 yearday = f.m.yearday;
  if (fits && yearday && yearday <= (is_leap(f.m.year) ? 366u : 365u))
    for (f.m.month = 1, f.m.day = yearday; f.m.day > month_days(f.m.year, f.m.month); f.m.month++)
      f.m.day -= month_days(f.m.year, f.m.month);
  else if (yearday) f.m.day = 32;
  if (!fits || r.s != r.end || f.m.day > month_days(f.m.year, f.m.month))
    return vm_error(vm, EK_value, "date.parse: \"%.60s\" is no time by the pattern \"%.60s\"", t->data, pattern->data);
  *m = f.m;
  *fraction = f.fraction;
  *zoned = f.zoned;
  return WEFT_OK;
}

static WeftStatus parse_one(Vm *vm, const Text *t, const Zone *z, const Text *pattern, f64 *out) {
  Moment m = {0};
  f64 fraction = 0;
  bool zoned = false;
  if (pattern) TRY(parse_by(vm, t, pattern, &m, &fraction, &zoned));
  Reading r = {t->data, t->data + t->len};
  const char *why = pattern ? NULL : read_date(&r, &m, &fraction, &zoned);
  if (why)
    return vm_error(vm, EK_value, "date.parse: \"%.60s\" is no ISO 8601 date, such as 2024-02-29T12:30:00Z: %s",
                    t->data, why);
  const i64 clock = days_of(m.year, m.month, m.day) * DAY + m.hour * HOUR + m.minute * MINUTE + m.second;
  *out = (f64)(clock - (zoned ? m.offset : offset_on_clocks(z, clock))) + fraction;
  return WEFT_OK;
}

WeftStatus eager_date_parse(Vm *vm, Value *args, Value *out) {
  static const char needs[] = "a text or a list of texts";
  Zone z;
  f64 one;
  if (args[0].kind != V_TEXT && args[0].kind != V_LIST) return args_error(vm, OP_date_parse, 0, args[0], needs);
  TRY(zone_of(vm, OP_date_parse, 1, args[1], &z));
  const bool by = args_given(args[2]);
  if (by && args[2].kind != V_TEXT) return args_error(vm, OP_date_parse, 2, args[2], "a text");
  const Text *pattern = by ? args[2].text : NULL;
  if (args[0].kind == V_TEXT) {
    TRY(parse_one(vm, args[0].text, &z, pattern, &one));
    *out = value_f64(one);
    return WEFT_OK;
  }
  if (!list_boxed(vm, args[0].list)) return WEFT_ERROR;
  const List *l = args[0].list;
  const i64 n = l->count;
  TRY(array_new(vm, DT_f64, 1, &n, out));
  WeftStatus status = WEFT_OK;
  for (i64 i = 0; i < n && status == WEFT_OK; i++) {
    const Value v = l->items[i];
    one = NAN; /* for "", which is missing */
    status = v.kind != V_TEXT ? args_error(vm, OP_date_parse, 0, v, needs)
             : v.text->len    ? parse_one(vm, v.text, &z, pattern, &one)
                              : WEFT_OK;
    ((f64 *)out->array->data)[i] = one;
    if (status == WEFT_OK && (i + 1) % BETWEEN_POLLS == 0) status = vm_poll(vm, 0);
  }
  if (status != WEFT_OK) value_drop(vm, *out);
  return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Parameter 0: a time, or a column of them, whose layout is described. */
typedef struct Times {
  const Array *column; /* NULL: a single one */
  i64 count, stride;
  f64 one;
} Times;

static WeftStatus times_of(Vm *vm, u32 op, Value v, Times *out) {
  static const char needs[] = "a number, or numbers of rank 1";
  *out = (Times){.count = 1};
  if (!value_is_numeric(v)) return args_error(vm, op, 0, v, needs);
  if (v.kind != V_ARRAY || !array_rank(v.array)) return args_f64(vm, op, 0, v, &out->one);
  TRY(args_array(vm, op, 0, v));
  if (array_rank(v.array) > 1 || dtype_kind(array_dtype(v.array)) == DK_COMPLEX)
    return args_error(vm, op, 0, v, needs);
  *out = (Times){v.array, v.array->size, array_strides(v.array)[0], 0};
  return WEFT_OK;
}

static f64 time_at(const Times *t, i64 i) {
  if (!t->column) return t->one;
  return num_as_f64(array_load(t->column, i * t->stride));
}

/* A time in a zone. */
static WeftStatus read_moment(Vm *vm, u32 op, f64 t, const Zone *z, Moment *out) {
  /* a day more at both ends: the zone says which year it is there */
  const f64 least = (f64)(days_of(YEAR_LEAST, 1, 1) - 1) * DAY, most = (f64)(days_of(YEAR_MOST, 12, 31) + 2) * DAY;
  const bool near = t >= least && t < most;
  if (near) {
    i64 seconds = (i64)t - (t < (f64)(i64)t);
    u32 micro = (u32)((t - (f64)seconds) * MICRO + 0.5);
    if (micro == MICRO) micro = 0, seconds++;
    const i64 offset = offset_at(z, seconds);
    moment_of(seconds + offset, out);
    out->micro = micro;
    out->offset = offset;
  }
  if (!near || out->year < YEAR_LEAST || out->year > YEAR_MOST)
    return vm_error(vm, EK_value, "%s: t must be a time of the years %d to %d, got %g", op_name(op), YEAR_LEAST,
                    YEAR_MOST, args_shown(t));
  return WEFT_OK;
}

static void put_offset(const Moment *m, bool colon, Buf *b) {
  const i64 minutes = (m->offset < 0 ? -m->offset : m->offset) / MINUTE;
  buf_printf(b, "%c%02lld%s%02lld", m->offset < 0 ? '-' : '+', (long long)(minutes / 60), colon ? ":" : "",
             (long long)(minutes % 60));
}

static void put_fraction(const Moment *m, Buf *b) {
  char text[16];
  if (!m->micro) return;
  snprintf(text, sizeof text, "%06u", m->micro);
  for (u32 n = 6; n && text[n - 1] == '0';) text[--n] = 0;
  buf_printf(b, ".%s", text);
}

static void put_iso(const Moment *m, const Zone *z, Buf *b) {
  buf_printf(b, "%04lld-%02u-%02uT%02u:%02u:%02u", (long long)m->year, m->month, m->day, m->hour, m->minute, m->second);
  put_fraction(m, b);
  if (!z->local && !z->offset) buf_putc(b, 'Z');
  else put_offset(m, true, b);
}

/* The week of ISO 8601, which belongs to the year of its Thursday, and that year. */
static void iso_week(const Moment *m, i64 *year, i64 *week) {
  const i64 thursday = (i64)m->yearday + 4 - m->weekday; /* of this week, counted in days of the year from 1 */
  const bool before = thursday < 1;
  const i64 days = is_leap(m->year) ? 366 : 365, last = is_leap(m->year - 1) ? 366 : 365;
  *year = before ? m->year - 1 : thursday > days ? m->year + 1 : m->year;
  *week = ((before ? thursday + last : thursday > days ? thursday - days : thursday) + 6) / 7;
}

/* As C's strftime in the locale "C"; false: the sign is unknown. */
static bool put_part(char sign, const Moment *m, Buf *b) {
  const u32 twelve = m->hour % 12 ? m->hour % 12 : 12;
  i64 year, week;
  iso_week(m, &year, &week);
  switch (sign) {
    case 'C': buf_printf(b, "%02lld", (long long)(m->year / 100)); break;
    case 'G': buf_printf(b, "%04lld", (long long)year); break;
    case 'g': buf_printf(b, "%02lld", (long long)(year % 100)); break;
    case 'V': buf_printf(b, "%02lld", (long long)week); break;
    case 'U': buf_printf(b, "%02u", (m->yearday + 6 - m->weekday % 7) / 7); break; /* weeks from the first Sunday on */
    case 'W': buf_printf(b, "%02u", (m->yearday + 7 - m->weekday) / 7); break;     /* from the first Monday on */
    case 'w': buf_printf(b, "%u", m->weekday % 7); break;
    case 'e': buf_printf(b, "%2u", m->day); break;
    case 'D': case 'x': buf_printf(b, "%02u/%02u/%02lld", m->month, m->day, (long long)(m->year % 100)); break;
    case 'R': buf_printf(b, "%02u:%02u", m->hour, m->minute); break;
    case 'r': buf_printf(b, "%02u:%02u:%02u %s", twelve, m->minute, m->second, m->hour < 12 ? "AM" : "PM"); break;
    case 'c':
      buf_printf(b, "%.3s %.3s %2u %02u:%02u:%02u %04lld", day_names[m->weekday - 1], month_names[m->month - 1], m->day,
                 m->hour, m->minute, m->second, (long long)m->year);
      break;
    case 'n': buf_putc(b, '\n'); break;
    case 't': buf_putc(b, '\t'); break;
    case 'Y': buf_printf(b, "%04lld", (long long)m->year); break;
    case 'y': buf_printf(b, "%02lld", (long long)(m->year % 100)); break;
    case 'm': buf_printf(b, "%02u", m->month); break;
    case 'd': buf_printf(b, "%02u", m->day); break;
    case 'H': buf_printf(b, "%02u", m->hour); break;
    case 'I': buf_printf(b, "%02u", twelve); break;
    case 'p': buf_puts(b, m->hour < 12 ? "AM" : "PM"); break;
    case 'M': buf_printf(b, "%02u", m->minute); break;
    case 'S': buf_printf(b, "%02u", m->second); break;
    case 'f': buf_printf(b, "%06u", m->micro); break;
    case 'j': buf_printf(b, "%03u", m->yearday); break;
    case 'u': buf_printf(b, "%u", m->weekday); break;
    case 'A': buf_puts(b, day_names[m->weekday - 1]); break;
    case 'a': buf_put(b, day_names[m->weekday - 1], 3); break;
    case 'B': buf_puts(b, month_names[m->month - 1]); break;
    case 'b': case 'h': buf_put(b, month_names[m->month - 1], 3); break;
    case 'F': buf_printf(b, "%04lld-%02u-%02u", (long long)m->year, m->month, m->day); break;
    case 'T': case 'X': buf_printf(b, "%02u:%02u:%02u", m->hour, m->minute, m->second); break;
    case 'z': put_offset(m, false, b); break;
    case '%': buf_putc(b, '%'); break;
    default: return false;
  }
  return true;
}

/* One text; `pattern`: NULL for ISO 8601. */
static WeftStatus format_one(Vm *vm, f64 t, const Zone *z, const Text *pattern, Value *out) {
  Moment m;
  Buf b;
  TRY(read_moment(vm, OP_date_format, t, z, &m));
  vm_buf_init(vm, &b);
  WeftStatus status = WEFT_OK;
  if (!pattern) put_iso(&m, z, &b);
  else
    for (const char *s = pattern->data, *end = s + pattern->len; s < end && status == WEFT_OK; s++) {
      if (b.failed) break;
      if (*s != '%') buf_putc(&b, *s);
      else if (s + 1 == end || !put_part(*++s, &m, &b))
        status = vm_error(vm, EK_value, "date.format: pattern: %%%.1s is unknown; "
                                        "%%a %%A %%b %%B %%c %%C %%d %%D %%e %%f %%F %%g %%G %%h %%H %%I %%j %%m %%M "
                                        "%%n %%p %%r %%R %%S %%t %%T %%u %%U %%V %%w %%W %%x %%X %%y %%Y %%z %%%% are",
                          s < end && (u8)*s < 0x80 ? s : "");
    }
  if (status == WEFT_OK)
    status = b.failed ? vm_error_buf(vm) : text_new(vm, buf_text(&b), b.len, out) ? WEFT_OK : WEFT_ERROR;
  buf_free(&b);
  return status;
}

WeftStatus eager_date_format(Vm *vm, Value *args, Value *out) {
  Zone z;
  Times t;
  TRY(zone_of(vm, OP_date_format, 2, args[2], &z));
  TRY(times_of(vm, OP_date_format, args[0], &t));
  if (args_given(args[1]) && args[1].kind != V_TEXT) return args_error(vm, OP_date_format, 1, args[1], "a text");
  const Text *pattern = args_given(args[1]) ? args[1].text : NULL;
  if (!t.column) return format_one(vm, t.one, &z, pattern, out);
  if (t.count > UINT32_MAX) return vm_error_memory(vm);
  if (!list_new(vm, (u32)t.count, out)) return WEFT_ERROR;
  for (i64 i = 0; i < t.count; i++) {
    const f64 at = time_at(&t, i);
    Value text;
    WeftStatus status = isnan(at) ? text_new(vm, "", 0, &text) ? WEFT_OK : WEFT_ERROR
                                  : format_one(vm, at, &z, pattern, &text);
    if (status == WEFT_OK && (i + 1) % BETWEEN_POLLS == 0 && vm_poll(vm, 0) != WEFT_OK) {
      value_drop(vm, text);
      status = WEFT_ERROR;
    }
    if (status != WEFT_OK) {
      value_drop(vm, *out);
      return status;
    }
    TRY(list_add(vm, out, text));
  }
  return WEFT_OK;
}

enum { PARTS = 9, SECOND_PART = 5 };

static const char *const part_names[PARTS] = {"year",   "month",   "day",     "hour",  "minute",
                                              "second", "weekday", "yearday", "offset"};

static void parts_of(const Moment *m, f64 *out) {
  const f64 parts[PARTS] = {(f64)m->year,
                            m->month,
                            m->day,
                            m->hour,
                            m->minute,
                            (f64)m->second + (f64)m->micro / MICRO,
                            m->weekday,
                            m->yearday,
                            (f64)m->offset};
  memcpy(out, parts, sizeof parts);
}

/* Columns of the parts of a column of times. A time that is missing, nan, has nan in each: all are floats then. */
static WeftStatus part_columns(Vm *vm, const Times *t, const Zone *z, Value *columns) {
  bool missing = false;
  for (i64 i = 0; i < t->count && !missing; i++) missing = isnan(time_at(t, i));
  for (u32 k = 0; k < PARTS; k++)
    TRY(array_new(vm, missing || k == SECOND_PART ? DT_f64 : DT_i64, 1, &t->count, &columns[k]));
  for (i64 i = 0; i < t->count; i++) {
    const f64 at = time_at(t, i);
    Moment m;
    f64 parts[PARTS];
    for (u32 k = 0; k < PARTS; k++) parts[k] = NAN;
    if (!isnan(at)) {
      TRY(read_moment(vm, OP_date_parts, at, z, &m));
      parts_of(&m, parts);
    }
    for (u32 k = 0; k < PARTS; k++)
      if (missing || k == SECOND_PART) ((f64 *)columns[k].array->data)[i] = parts[k];
      else ((i64 *)columns[k].array->data)[i] = (i64)parts[k];
    if ((i + 1) % BETWEEN_POLLS == 0) TRY(vm_poll(vm, 0));
  }
  return WEFT_OK;
}

WeftStatus eager_date_parts(Vm *vm, Value *args, Value *out) {
  Zone z;
  Times t;
  Value parts[PARTS];
  for (u32 k = 0; k < PARTS; k++) parts[k] = value_nil();
  TRY(zone_of(vm, OP_date_parts, 1, args[1], &z));
  TRY(times_of(vm, OP_date_parts, args[0], &t));
  WeftStatus status = WEFT_OK;
  if (t.column) status = part_columns(vm, &t, &z, parts);
  else {
    Moment m;
    f64 single[PARTS];
    TRY(read_moment(vm, OP_date_parts, t.one, &z, &m));
    parts_of(&m, single);
    for (u32 k = 0; k < PARTS; k++)
      parts[k] = k == SECOND_PART ? value_f64(single[k]) : value_i64((i64)single[k]);
  }
  Name keys[PARTS];
  bool named = true;
  for (u32 k = 0; k < PARTS; k++) named &= (keys[k] = name_cstr(&vm->names, part_names[k])) != 0;
  if (status == WEFT_OK && !named) status = vm_error_memory(vm);
  if (status == WEFT_OK && !record_new_keys(vm, keys, PARTS, out)) status = WEFT_ERROR;
  for (u32 k = 0; k < PARTS; k++)
    if (status == WEFT_OK) out->record->items[k] = parts[k];
    else value_drop(vm, parts[k]);
  return status;
}
