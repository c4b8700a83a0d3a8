# Makes a case of the example that each row of lang/ops.def carries: awk -f op-examples.awk lang/ops.def
# The example stands behind the last "; " of the documentation: `EXPR is VALUE`, or a comparison that is true.
BEGIN { print "# The examples of lang/ops.def." }
# A row goes on until its documentation ends; a text goes on in the next line behind its quotes.
/^(OP|WEFT)\(/ { open = "" }
/^(OP|WEFT)\(/ || open != "" {
  open = open $0
  if (open !~ /"\)$/) next
  $0 = open
  open = ""
  gsub(/\\\\/, "\002")
  gsub(/\\"/, "\001") # a quote inside of a text
  gsub(/" +"/, "")
  name = $0; sub(/^(OP|WEFT)\(/, "", name); sub(/,.*/, "", name)
  doc = $0; sub(/"\)[^"]*$/, "", doc); sub(/.*"/, "", doc)
  n = split(doc, part, /; /)
  if (n < 2 || part[n] !~ /( is | == | < | > | <= | >= )/) next
  example = part[n]
  gsub(/'|\001/, "\"", example)
  gsub(/\002/, "\\", example)
  print "#{ " name
  if (name == "trace_explain" || name == "trace_export") only = "#% only mir"; else only = ""
  at = index(example, " is ")
  if (at) { print substr(example, 1, at - 1); print "#= " substr(example, at + 4) }
  else { print example; print "#= true" }
  if (only) print only
  if (name ~ /^(env|exists|list_dir|script_dir)$/) print "#% files"
  print "#}"
}
