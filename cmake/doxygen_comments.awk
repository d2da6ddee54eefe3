# Doxygen reads "///" and "///<"; our headers have plain comments in the same places. This filter, which Doxygen runs
# on every public header, turns the ones into the others: the first block of a header describes the file, a block
# above a declaration describes that declaration, and a comment behind one describes it too.
NR == 1 && /^\/\// { print "/// @file"; print "///"; }
/^ *\/\/($|[^\/])/ {
  # A comment's text that is indented by three spaces is code; Markdown wants four and more.
  match($0, /^ *\/\//)
  head = substr($0, 1, RLENGTH)
  text = substr($0, RLENGTH + 1)
  if (text ~ /^   /) text = "  " text
  print head "/" text
  next
}
/[^ ] +\/\/ [^ ]/ && !/"[^"]*\/\/[^"]*"/ && !/^#|^}|namespace/ {
  sub(/\/\/ /, "///< ")
}
# The arrays of all values of an enumeration need no words of their own.
/^inline constexpr [A-Za-z]+ k[A-Za-z]+s\[\]/ { print "/// All values of " $3 "." }
/^namespace syncopate \{/ && FILENAME ~ /syncopate\.h$/ { print "/// All that the public headers declare." }
{ print }
