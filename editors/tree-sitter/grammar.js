/**
 * grammar.js — the syntax of Weft for tree-sitter.
 *
 * What the parser of Weft accepts is parsed; some of what it refuses is too. Newlines that end a statement, and what
 * only a look at several tokens tells, come from src/scanner.c.
 */
/// <reference types="tree-sitter-cli/dsl" />
// @ts-check

// How tightly operators bind, loosest first, as in parser/parse.h.
const power = {
  lambda: 1,
  pipe: 10,
  or: 20,
  and: 30,
  not: 40,
  compare: 50,
  bits_or: 60,
  bits_xor: 70,
  bits_and: 80,
  shift: 90,
  range: 100,
  add: 110,
  multiply: 120,
  unary: 130,
  power: 140,
  postfix: 150,
}

const binary = {
  or: ['or'],
  and: ['and'],
  compare: ['==', '!=', '<', '<=', '>', '>=', 'in'],
  bits_or: ['|'],
  bits_xor: ['^'],
  bits_and: ['&'],
  shift: ['<<', '>>'],
  add: ['+', '-'],
  multiply: ['*', '/', '//', '%', '@'],
}

const assignments = ['=', '+=', '-=', '*=', '/=', '//=', '%=', '@=', '**=', '&=', '|=', '^=', '<<=', '>>=']

// Items with commas between them and perhaps one behind the last.
const items1 = rule => seq(rule, repeat(seq(',', rule)), optional(','))
const items = rule => optional(items1(rule))
const one = list => list.length > 1 ? choice(...list) : list[0]

// A letter or `_`; those beyond ASCII as is_wide_letter of parser/lexer.c has them.
const letter =
  'A-Za-z_\\u00AA\\u00B5\\u00BA\\u00C0-\\u00D6\\u00D8-\\u00F6\\u00F8-\\u1FFF\\u2070-\\u209F\\u20D0-\\u218F' +
  '\\u2C00-\\u2DFF\\u2E80-\\u2FFF\\u3021-\\uD7FF\\uF900-\\uFDFF\\uFE70-\\uFEFE\\uFF21-\\u{1EFFF}'
const digits = '[0-9]+(_[0-9]+)*'

// A piece of a text begins right behind what is before it; blanks and comments are text there.
const piece = rule => token.immediate(prec(2, rule))

// What a text of each sort holds between its quotes. Three quotes end a long one, so one or two are text.
const plain = { short: /[^"\\\n]+/, long: /[^"\\]+/ }
const formatted = { short: /([^"\\{}\n])+/, long: /[^"\\{}]+/ }
const quotes = piece(/""?/)

export default grammar({
  name: 'weft',

  extras: $ => [/[ \t\r\n\f]/, $.comment],

  word: $ => $.identifier,

  externals: $ => [
    $._newline, // ends a statement
    $._lambda_open, // the `(` of `(…) =>`
    $._catch_open, // the `{` of `catch {…} {`, which begins a pattern
    $._recovery, // valid only where an error is mended
  ],

  supertypes: $ => [$.expression, $.pattern],

  rules: {
    program: $ => optional($._statements),

    comment: _ => token(/#[^\n]*/),

    // ---- statements ----

    _statements: $ => choice(seq(repeat1($._ended), optional($._statement)), $._statement),

    // A statement that ends at its closing brace needs nothing behind it.
    _ended: $ => choice(
      seq($._statement, choice($._newline, ';')),
      seq($._brace_statement, optional($._newline)),
      ';',
    ),

    _statement: $ => choice(
      $.let_statement,
      $.assignment,
      $.return_statement,
      $.break_statement,
      $.continue_statement,
      $.import_statement,
      alias($._value_function, $.function_definition),
      $.expression,
    ),

    _brace_statement: $ => prec(1, choice(
      $.if_expression,
      $.while_expression,
      $.for_expression,
      $.try_expression,
      $.block,
      alias($._block_function, $.function_definition),
    )),

    let_statement: $ => seq('let', field('pattern', $.pattern), '=', field('value', $.expression)),

    assignment: $ => seq(
      field('target', $.expression), field('operator', choice(...assignments)), field('value', $.expression)),

    return_statement: $ => seq('return', optional($.expression)),
    break_statement: _ => 'break',
    continue_statement: _ => 'continue',

    import_statement: $ => seq(
      'import', choice(field('path', $.string), field('module', $.identifier)),
      optional(seq('as', field('name', $.identifier)))),

    _value_function: $ => seq(
      'fn', field('name', $.identifier), field('parameters', $.parameters), '=', field('body', $.expression)),

    _block_function: $ => seq(
      'fn', field('name', $.identifier), field('parameters', $.parameters), field('body', $._body)),

    // `{ }` is an empty block where a block is meant, elsewhere an empty record.
    block: $ => seq('{', $._statements, '}'),
    _empty_block: _ => seq('{', '}'),
    _body: $ => choice($.block, alias($._empty_block, $.block)),

    // ---- patterns and parameters ----

    pattern: $ => choice($.identifier, $.list_pattern, $.record_pattern),

    list_pattern: $ => seq('(', items(choice($.pattern, $.rest_pattern)), ')'),
    rest_pattern: $ => seq('...', $.identifier),
    record_pattern: $ => seq('{', items(choice($._field_patterns, $.rest_pattern)), '}'),
    _field_patterns: $ => choice($.identifier, $.field_pattern),
    field_pattern: $ => seq(
      field('key', choice($.identifier, $.string)), ':', field('pattern', $.pattern)),
    _catch_pattern: $ => seq(
      alias($._catch_open, '{'), items(choice($._field_patterns, $.rest_pattern)), '}'),

    parameters: $ => seq('(', items($._parameter), ')'),
    _lambda_parameters: $ => seq(alias($._lambda_open, '('), items($._parameter), ')'),

    _parameter: $ => choice($.pattern, $.rest_pattern, $.parameter),
    parameter: $ => choice(
      seq(field('name', $.pattern), ':', field('type', $.type), optional(seq('=', field('default', $.expression)))),
      seq(field('name', $.pattern), '=', field('default', $.expression))),

    type: $ => seq(
      field('name', choice($.identifier, 'fn', 'nil')),
      optional(seq('[', items(choice($.identifier, $.integer)), ']'))),

    // ---- expressions ----

    expression: $ => choice(
      $.identifier,
      $.integer,
      $.float,
      $.true,
      $.false,
      $.nil,
      $.string,
      $.format_string,
      $.parenthesized_expression,
      $.list,
      $.array,
      $.record,
      $.block,
      $.function_expression,
      $.lambda,
      $.if_expression,
      $.while_expression,
      $.for_expression,
      $.try_expression,
      $.unary_expression,
      $.binary_expression,
      $.range,
      $.pipe_expression,
      $.call,
      $.index,
      $.member,
    ),

    if_expression: $ => seq(
      'if', field('condition', $.expression), field('consequence', $._body),
      optional(seq('else', field('alternative', choice($._body, $.if_expression))))),

    while_expression: $ => seq('while', field('condition', $.expression), field('body', $._body)),

    for_expression: $ => seq(
      'for', field('pattern', $.pattern), 'in', field('sequence', $.expression), field('body', $._body)),

    try_expression: $ => seq(
      'try', field('body', $._body), 'catch',
      optional(field('pattern', choice($.identifier, $.list_pattern, alias($._catch_pattern, $.record_pattern)))),
      field('handler', $._body)),

    function_expression: $ => prec.right(power.lambda, seq(
      'fn', field('parameters', $.parameters), choice(field('body', $._body), seq('=', field('body', $.expression))))),

    lambda: $ => prec.right(power.lambda, seq(
      field('parameters', choice($.identifier, alias($._lambda_parameters, $.parameters))),
      '=>', field('body', $.expression))),

    unary_expression: $ => choice(
      prec(power.unary, seq(field('operator', choice('-', '+', '~')), field('operand', $.expression))),
      prec(power.not, seq(field('operator', 'not'), field('operand', $.expression)))),

    binary_expression: $ => choice(
      ...Object.entries(binary).map(([level, operators]) => prec.left(power[level], seq(
        field('left', $.expression), field('operator', one(operators)), field('right', $.expression)))),
      prec.right(power.power, seq(
        field('left', $.expression), field('operator', '**'), field('right', $.expression)))),

    range: $ => prec.right(power.range, seq(
      field('start', $.expression), '..', field('end', $.expression),
      optional(seq('by', field('step', $.expression))))),

    pipe_expression: $ => prec.left(power.pipe, seq(field('left', $.expression), '|>', field('right', $.expression))),

    call: $ => prec(power.postfix, seq(field('function', $.expression), field('arguments', $.arguments))),
    arguments: $ => seq('(', items(choice($.expression, $.spread, $.named_argument)), ')'),
    named_argument: $ => seq(field('name', $.identifier), '=', field('value', $.expression)),
    spread: $ => seq('...', $.expression),

    index: $ => prec(power.postfix, seq(
      field('value', $.expression), '[', items1(choice($.expression, $.slice, $.ellipsis)), ']')),
    slice: $ => seq(
      optional(field('start', $.expression)), ':', optional(field('stop', $.expression)),
      optional(seq(':', optional(field('step', $.expression))))),
    ellipsis: _ => '...',

    member: $ => prec(power.postfix, seq(field('value', $.expression), '.', field('name', $.identifier))),

    parenthesized_expression: $ => seq('(', $.expression, ')'),
    list: $ => seq('(', optional(choice(
      seq($.spread, optional(seq(',', items($._item)))),
      seq($.expression, ',', items($._item)))), ')'),
    _item: $ => choice($.expression, $.spread),
    array: $ => seq('[', items($.expression), ']'),

    // `{m}` is a block, `{m,}` and `{m, v}` are records.
    record: $ => seq('{', optional(choice(
      seq(choice($.spread, $.entry), optional(seq(',', items($._entry)))),
      seq($.identifier, ',', items($._entry)))), '}'),
    _entry: $ => choice($.spread, $.entry, $.identifier),
    entry: $ => seq(field('key', choice($.identifier, $.string)), ':', field('value', $.expression)),

    // ---- texts ----

    string: $ => choice(
      seq('"', repeat(choice(piece(plain.short), $.escape_sequence)), token.immediate('"')),
      seq('"""', repeat(choice(piece(plain.long), quotes, $.escape_sequence)), piece('"""'))),

    format_string: $ => choice(
      seq('f"', repeat(choice(piece(formatted.short), $.escape_sequence, $.brace, $.interpolation)),
        token.immediate('"')),
      seq('f"""', repeat(choice(piece(formatted.long), quotes, $.escape_sequence, $.brace, $.interpolation)),
        piece('"""'))),

    brace: _ => piece(/\{\{|\}\}/),
    escape_sequence: _ => piece(/\\(u\{[^}"\n]*\}|[^\n])/),

    interpolation: $ => seq(
      token.immediate('{'), field('value', $.expression), optional(seq(':', optional(field('format', $.format)))), '}'),
    format: $ => repeat1(choice(piece(formatted.short), $.escape_sequence, $.interpolation)),

    // ---- words and numbers ----

    true: _ => 'true',
    false: _ => 'false',
    nil: _ => 'nil',

    integer: _ => token(choice(
      new RegExp(digits),
      /0[xX][0-9A-Fa-f]+(_[0-9A-Fa-f]+)*/,
      /0[bB][01]+(_[01]+)*/)),

    float: _ => token(choice(
      new RegExp(`${digits}\\.${digits}([eE][+-]?${digits})?j?`),
      new RegExp(`${digits}[eE][+-]?${digits}j?`),
      new RegExp(`${digits}j`))),

    identifier: _ => new RegExp(`[${letter}][${letter}0-9]*`, 'u'),
  },
})
