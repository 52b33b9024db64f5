# Prints sentences of plain words, the same for the same -v seed: awk -v n=SENTENCES -v seed=NUMBER -f prose.awk
function next_random(m) { state = (state * 16807) % 2147483647; return state % m }
BEGIN {
	words = "the a one no every some harbour ledger window engine river letter signal garden minister office coffee difficult affair flight " \
		"staff efficient file fluffy waffle north winter measure between across after before carries follows returns opens keeps counts " \
		"answers writes reads slowly often never always quiet bright narrow seventeen thousand report budget copper meadow lantern"
	count = split(words, w, " ")
	state = seed * 7919 + 1
	for (i = 0; i < n; i++) {
		k = 6 + next_random(12)
		line = ""
		for (j = 0; j < k; j++) {
			word = w[1 + next_random(count)]
			if (j == 0) word = toupper(substr(word, 1, 1)) substr(word, 2)
			line = line (j ? " " : "") word ((j > 2 && j < k - 2 && next_random(9) == 0) ? "," : "")
		}
		print line "."
	}
}
