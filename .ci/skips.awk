# Counts the tests in the output of "go test -v" and fails when none ran or one
# skipped that the file named by the variable "allowed" does not list. The last
# lines name each that skipped.
BEGIN {
	while ((getline line < allowed) > 0)
		if (line !~ /^(#|$)/) {
			split(line, word, " ")
			may[word[1]] = 1
		}
}
/^ *--- PASS: / { passed++ }
/^ *--- FAIL: / { failed++ }
/^ *--- SKIP: / {
	skipped++
	if (!($3 in may)) {
		print "skipped without leave in .ci/skips: " $3
		bad = 1
	}
	sub(/^ +/, "", previous) # the reason, as "go test -v" prints it
	why[skipped] = $3 ": " previous
}
{ previous = $0 }
END {
	printf "tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped
	for (i = 1; i <= skipped; i++)
		print "    " why[i]
	exit bad || failed || !passed
}
