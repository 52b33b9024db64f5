package main

import "strings"

// An attackRow is one kind of bad input.
type attackRow struct {
	id, what string
	tries    []attackTry
	run      func(*attackRun) // calls that are not a path to every tool
	test     string           // what has the row at length
	not      string           // why it can't be here
}

// An attackTry is a path that every tool gets. "no": nothing may come of it. "leaf": the same, but
// that a link itself may go. "shut": nothing changes. "ok": it can be read. Else only that nothing is
// told and nothing outside changes. What is "there" in a path has its twin that is "absnt", and the
// two are refused alike.
type attackTry struct{ want, path string }

func no(paths ...string) (out []attackTry) { return tries("no", paths) }

func tries(want string, paths []string) (out []attackTry) {
	for _, p := range paths {
		out = append(out, attackTry{want, p})
	}
	return out
}

// attackRows are all of the catalogue. R is the root, B the directory above.
var attackRows = []attackRow{
	{id: "A01", what: "a relative path upwards", tries: no("../out/there", "ws/../../out/there", "../../../../etc/passwd")},
	{id: "A02", what: "an absolute path upwards", tries: no("R/../out/there", "R/sub/../../out/there")},
	{id: "A03", what: "upwards through a link", tries: no("R/linksub/../there", "R/linksub/../dir/there")},
	{id: "A04", what: "a sibling with the same beginning", tries: no("R-evil/there", "Rx")},
	{id: "A05", what: "doubled slashes and dots", tries: append(tries("ok", []string{"R//./sub/.././plain", "R" + strings.Repeat("/.", 1000) + "/plain"}),
		no("/R/../out/there", "//etc/passwd")...)},
	{id: "A06", what: "a file as a directory", tries: tries("", []string{"R/plain/", "R/plain/.", "R/plain/..", "R/plain/../../out/there"})},
	{id: "A07", what: "what a shell or a browser would expand", tries: append(no("~/x", "~root/x", "$HOME/x", "%2e%2e%2fout/there", "file://B/out/there", `\\?\C:\x`),
		tries("", []string{"", ".", "/", "R/%2e%2e/out/there"})...)},
	{id: "A08", what: "a NUL", tries: no("R/plain\x00.png", "B/out/there\x00R/plain")},
	{id: "A09", what: "control characters in a name", tries: tries("ok", []string{"R/odd\n\r\t\x1b[31m\x7f"})},
	{id: "A10", what: "a name that is no UTF-8", run: runNotUTF8, test: "TestNameThatIsNotUTF8"},
	{id: "A11", what: "half a surrogate, and bytes that are no UTF-8", run: runBadText},
	{id: "A12", what: "names and paths that are too long", tries: no("R/"+strings.Repeat("x", 256), "R/"+strings.Repeat("x/", 3000)+"x", "R/"+strings.Repeat("../ws/", 2500)+"../out/there"), test: "TestDeepChain"},
	{id: "A13", what: "a name that looks deleted", tries: tries("", []string{"R/plain (deleted)", "B/out/there (deleted)"})},
	{id: "A14", what: "names like options", tries: tries("ok", []string{"R/-rf", "R/@plain"})},
	{id: "A15", what: "glob characters in a path", tries: append(tries("ok", []string{"R/[a].txt"}), append(tries("", []string{"R/s*/there", "R/{secret,x}/there"}),
		no("R/app/[id]/there", "R/app/[ID]/there", "R/app/[id]/absnt", "R/{-$lang}/there", "R/{-$LANG}/there")...)...), test: "TestLettersHoldByIdentity"},
	{id: "A16", what: "backslashes", tries: append(no(`R\..\out\there`), tries("", []string{`R/secret\there`, `R/..\..\out\there`})...)},
	{id: "A17", what: "drives, shares and devices of Windows", tries: no(`C:x`, `\\srv\share`, `\\.\PhysicalDrive0`, "//./pipe/there")},
	{id: "A18", what: "CON, NUL, COM1", not: "Windows alone reserves them"},
	{id: "A19", what: "streams of NTFS", tries: append(no("R/secret::$INDEX_ALLOCATION/there", "R/d0there9/.env::$DATA"), tries("shut", []string{"R/repo/.git::$INDEX_ALLOCATION/config"})...)},
	{id: "A20", what: "short names of NTFS", tries: tries("shut", []string{"R/new/GIT~1/config", "R/repo/GIT~1/config"}), test: "TestOurNames"},
	{id: "A21", what: "dots and blanks at the end", tries: no("R/secret./there", "R/secret /there", "R/d0there9/.env ", "R/d0there9/.env.")},
	{id: "A22", what: "another case, also of Turkish and of old letters", tries: no("R/SECRET/there", "R/\u017fecret/there", "R/\u212aist/there", "R/d0there9/.ENV")},
	{id: "A23", what: "composed and decomposed letters", tries: no("R/cafe\u0301/there", "R/caf\u00e9/there")},
	{id: "A24", what: "letters that can't be seen", tries: no("R/sec\u200dret/there", "R/d0there9/.e\u200cnv", "R/sec\ufeffret/there", "R/secret\ufe0f/there")},
	{id: "A25", what: "two names that are one elsewhere", tries: tries("ok", []string{"R/Same", "R/same"})},

	{id: "B01", what: "a link to what is outside", tries: tries("leaf", []string{"R/l-there", "R/r-there", "R/linkdir"})},
	{id: "B02", what: "a link to what is allowed", tries: tries("ok", []string{"R/in"}), test: "TestEveryPathTimesEveryTool"},
	{id: "B03", what: "a link in the way", tries: append(tries("ok", []string{"R/indir/plain"}), no("R/linkdir/there", "R/linkdir/dir/there")...)},
	{id: "B04", what: "links in circles", tries: tries("leaf", []string{"R/loop", "R/a-loop"})},
	{id: "B05", what: "a link to nothing", tries: tries("leaf", []string{"R/dangling"})},
	{id: "B06", what: "a link to what is denied", tries: append(tries("leaf", []string{"R/s-there", "R/sdir"}), no("R/sdir/there")...)},
	{id: "B07", what: "a denied name that leads to what is allowed", tries: no("R/named/.env")},
	{id: "B08", what: "a rule that names a link", tries: no("R/rulelink/there", "R/ruled/there")},
	{id: "B09", what: "a hard link to what is denied", tries: no("R/hl"), test: "TestHardLinkToDenied"},
	{id: "B10", what: "a change of one of two names", tries: tries("ok", []string{"R/h1"}), run: runTwoNames},
	{id: "B11", what: "more names than can be looked at", test: "TestLooks"},
	{id: "B12", what: "the links of /proc", tries: no("/proc/self/rootB/out/there", "/proc/self/cwd/there", "/proc/1/rootB/out/there", "/proc/thread-self/rootB/out/there", "/proc/self/fd/0")},
	{id: "B13", what: "a link to such a link", tries: no("R/magicB/out/there", "R/magic/etc/passwd")},
	{id: "B14", what: "files of the kernel", tries: no("/proc/self/environ", "/proc/self/mem", "/sys/kernel/notes", "/dev/shm/there")},
	{id: "B15", what: "our own standard input", tries: no("/dev/stdin", "/dev/fd/0", "/dev/tty")},
	{id: "B16", what: "a denied tree mounted elsewhere", test: "TestBindMounts"},
	{id: "B17", what: "a mount amid a walk", test: "TestMountDuringAWalk"},
	{id: "B18", what: "a mount over the parent amid a change", test: "TestOurDataByAMount"},
	{id: "B19", what: "a name that can't be reached from the root", not: "takes a chroot; a true name without a slash at its beginning is refused (guardfs)"},
	{id: "B20", what: "junctions", not: "Windows"},
	{id: "B21", what: "firmlinks and forks", not: "macOS"},
	{id: "B22", what: "numbers of files that are used again", test: "TestIdentity"},

	{id: "C01", what: "a FIFO", tries: tries("leaf", []string{"R/fifo"})},
	{id: "C02", what: "a socket and devices", tries: append(tries("leaf", []string{"R/socket", "R/zero"}), no("/dev/zero", "/dev/null")...)},
	{id: "C03", what: "a file that becomes a FIFO", test: "TestHandleSurvivesSwaps"},
	{id: "C04", what: "a terabyte of nothing", run: runSparse, test: "TestCopyLarge"},
	{id: "C05", what: "a file that grows", test: "TestReadOfGrowingFile"},
	{id: "C06", what: "a file that is cut while it is read", test: "TestReadTorn"},
	{id: "C07", what: "a file of size 0 with content", tries: no("/proc/self/status", "/proc/version"), test: "TestGrowingAndUnsizedFiles"},
	{id: "C08", what: "odd lines and encodings", tries: tries("", []string{"R/text/long.txt", "R/text/cr.txt", "R/text/nul.bin", "R/text/utf16.txt"})},
	{id: "C09", what: "very many entries", run: runManyEntries, test: "TestDirOfManyNames"},
	{id: "C10", what: "a file system that does not answer", test: "TestFrozenFileSystem"},
	{id: "C11", what: "a file that can't be changed by anybody", test: "TestMetadataThatCannotBeKept"},
	{id: "C12", what: "no room", test: "TestFullDisk"},
	{id: "C13", what: "a setuid file", run: runSetuid, test: "TestMetadataIsKept"},

	{id: "D01", what: "the parent becomes a link outside", run: runRace("../../out"), test: "TestRace"},
	{id: "D02", what: "the parent becomes a link to what is denied", run: runRace("../secret"), test: "TestRace"},
	{id: "D03", what: "the file becomes a link, reading", run: runLeafRace, test: "TestRace"},
	{id: "D04", what: "the file becomes a link, writing", run: runLeafRace, test: "TestLinkSwappedInAllTheTime"},
	{id: "D05", what: "the parent is moved away and back", test: "TestRaceOfTheDirectoryItself"},
	{id: "D06", what: "another file in its place", test: "TestRestlessWriter"},
	{id: "D07", what: "other bytes in the same file", test: "TestRestlessWriter"},
	{id: "D08", what: "a third writer amid the exchange", test: "TestMoveBetweenAnyTwoCalls"},
	{id: "D09", what: "the name of our temporary file", tries: no("R/.moltis-0123456789abcdef01234567.tmp"), test: "TestOurNamesHideNothing"},
	{id: "D10", what: "our temporary file is swapped", test: "TestSwappedTemporaryName"},
	{id: "D11", what: "a directory becomes a link amid a walk", run: runRace("../secret"), test: "TestWalkAmidChurn"},
	{id: "D12", what: "a directory becomes a link amid a removal", run: runRace("../../out"), test: "TestDeleteWhileALinkIsSwappedIn"},
	{id: "D13", what: "what is moved is swapped", test: "TestMoveOfWhatIsSwapped"},
	{id: "D14", what: "a part of a tree that is copied is swapped", run: runRace("../secret"), test: "TestRaces"},
	{id: "D15", what: "a change while somebody is asked", test: "TestAChangeDuringTheQuestionIsStale"},
	{id: "D16", what: "other rules amid a call", test: "TestReload"},
	{id: "D17", what: "a watched directory goes", test: "TestWatchEnds"},
	{id: "D18", what: "two restores, and one beside the cleaning", test: "TestTwoRestoreTheSame"},
	{id: "D19", what: "upwards from a directory that moves", test: "TestRenamedWhileClimbing"},

	{id: "E01", what: "git's hooks and configuration", tries: tries("shut", []string{"R/repo/.git/hooks/pre-commit", "R/repo/.git/config", "R/repo/.gitmodules", "R/sub/.git"}), test: "TestTreesThatHoldCode"},
	{id: "E02", what: "start files of shells", tries: tries("shut", []string{"R/repo/.bashrc", "R/new/.zshrc", "R/repo/.profile", "R/repo/.envrc"})},
	{id: "E03", what: "keys and tokens", tries: no("R/d0there9/.ssh/id_rsa", "R/d0there9/.aws/credentials", "R/d0there9/.npmrc", "R/d0there9/.netrc", "R/d0there9/x.key",
		"R/d0there9/.git-credentials", "R/d0there9/.kube/config", "R/d0there9/.gnupg/x", "R/d0there9/.docker/config.json",
		"R/d0there9/.npmrc~", "R/d0there9/id_rsa.txt", "R/d0there9/.aws/credentials.bak", "R/d0there9/x.key.gz", "R/d0there9/#.env#")},
	{id: "E04", what: ".env", tries: no("R/d0there9/.env", "R/d0absnt9/.env.local")},
	{id: "E05", what: "what agents and editors obey", tries: tries("shut", []string{"R/repo/.mcp.json", "R/new/CLAUDE.md", "R/repo/.claude/settings.json", "R/repo/.cursor/mcp.json", "R/repo/.vscode/tasks.json", "R/repo/AGENTS.md"})},
	{id: "E06", what: "what starts by itself", tries: tries("shut", []string{"R/repo/.github/workflows/x.yml", "R/repo/.husky/pre-commit", "R/repo/.gitlab-ci.yml",
		"R/repo/.config/systemd/user/x.service", "R/repo/.config/autostart/x.desktop"})},
	{id: "E07", what: "what is ours", tries: no("B/data/c.toml", "B/data/d/audit/audit.jsonl", "B/data/d/there", "R/.moltis-trash-0/there"), test: "TestOurOwnFilesAreOffLimits"},
	{id: "E08", what: "our rules where the agent may write", run: runDataInside, test: "TestTheDataDirMustBeOutOfReach"},
	{id: "E09", what: "a dangerous name that is not there yet", tries: tries("shut", []string{"R/new/.git/config", "R/new/.vscode/tasks.json", "R/new/.claude/settings.json", "R/new/.mcp.json"})},
	{id: "E10", what: "a tree that holds such names", tries: tries("", []string{"R/tree", "R/repo"}), test: "TestTreesThatHoldCode"},
	{id: "E11", what: "the directory above what is ours", tries: append(tries("", []string{"B"}), no("B/data")...), test: "TestOurOwnFilesAreOffLimits"},
	{id: "E12", what: "files that act like links", not: "Windows and macOS; .gitattributes is an ordinary file here"},
	{id: "E13", what: "a file becomes a program", test: "TestExecutablesAreTold"},
	{id: "E14", what: "an old configuration comes back", tries: no("B/data/c.toml"), test: "TestDeniedByNow"},

	{id: "F01", what: "patterns that take for ever", run: runPatterns, test: "TestEveryEngineStops"},
	{id: "F02", what: "a million brackets", run: runBrackets, test: "TestCompileIsBounded"},
	{id: "F03", what: "globs that multiply", run: runGlobs, test: "TestNoBlowUp"},
	{id: "F04", what: "numbers at the edge", run: runNumbers},
	{id: "F05", what: "windows beyond the end", run: runNumbers},
	{id: "F06", what: "edits that multiply", run: runEdits, test: "TestMemoryOfAnEdit"},
	{id: "F07", what: "old text that is empty, or everywhere", run: runOldText},
	{id: "F08", what: "images that unpack", test: "TestImageBombsAndDamage"},
	{id: "F09", what: "PDFs that unpack", test: "TestHostilePDFs"},
	{id: "F10", what: "documents that unpack", test: "TestHostileDocuments"},
	{id: "F11", what: "arguments given twice, in another case, or very deep", run: runDoubles},
	{id: "F12", what: "very many calls at once", test: "TestCallsAtOnce"},
	{id: "F13", what: "a storm of events", test: "TestWatchOverflow"},
	{id: "F14", what: "a store that grows", test: "TestTheBoundHoldsForSeveral"},
	{id: "F15", what: "a trash that grows", test: "TestTrash"},
	{id: "F16", what: "a log that can't be written", test: "TestNoAuditNoChange"},
	{id: "F17", what: "the same call again and again", run: runAgain, test: "TestLimits"},

	{id: "G01", what: "text that speaks to the model", tries: tries("", []string{"R/text/fake.txt"})},
	{id: "G02", what: "sequences that a terminal obeys", tries: tries("", []string{"R/text/esc.txt"}), test: "TestNoControlsOnTheTerminal"},
	{id: "G03", what: "letters that can't be seen, in a text", tries: tries("", []string{"R/text/bidi.txt"}), run: runHidden, test: "TestHiddenLines"},
	{id: "G04", what: "a name that looks like another", test: "TestLookalike"},
	{id: "G05", what: "a change below what is shown", test: "TestUnseenIsSaid"},
	{id: "G06", what: "changes of blanks and line ends", test: "TestNothingGetsThrough"},
	{id: "G07", what: "markup in the page that asks", not: "we have no page; TestForeignOrigin for those of others"},
	{id: "G08", what: "markup in a viewer", not: "we have no viewer"},
	{id: "G09", what: "secrets in what may be read", not: "nothing is redacted, and SECURITY.md says so"},
	{id: "G10", what: "refusals that tell what is there", tries: no("R/secret/there", "R/secret/there/x", "R/secret/there/../../plain", "B/out/there/../../ws/plain"), test: "TestNoExistenceOracle"},
	{id: "G11", what: "a line break in the log", tries: tries("", []string{"R/x\n{\"seq\":1}"}), run: runLog},

	{id: "H01", what: "something else than what was approved", test: "TestALinkDuringTheQuestionLeadsNowhere"},
	{id: "H02", what: "an approval again, or of another", test: "TestOneAnswerWins"},
	{id: "H03", what: "the agent approves", test: "TestNotAnAnswer"},
	{id: "H04", what: "nobody answers", run: runNobody, test: "TestNobodyAnswers"},
	{id: "H05", what: "an approval for more than one change", test: "TestGrants"},
	{id: "H06", what: "one of several is refused", run: runOneOfSeveral},
	{id: "H07", what: "what another session has read", run: runUnread, test: "TestSessionsSideBySide"},
	{id: "H08", what: "what was read by another name", test: "TestNoReadOfWhatWasRead"},
	{id: "H09", what: "a part was read, and all is written", test: "TestPartIsNotTheWhole"},
	{id: "H10", what: "ids that are paths", run: runIDs, test: "TestIDs"},
	{id: "H11", what: "a restore through a link", test: "TestAttacksOnTheTrash"},
	{id: "H12", what: "a damaged store", test: "TestTamperedContentIsCorrupt"},
	{id: "H13", what: "a forged note of where something lay", test: "TestTrashOfOthersIsNotUsed"},
	{id: "H14", what: "frames that are none", run: runFrames, test: "TestBatchesAndNotifications"},
	{id: "H15", what: "other words on standard output", run: runOutput},

	{id: "I01", what: "the name of another host", run: runDoors, test: "TestDoors"},
	{id: "I02", what: "the page of another host", run: runDoors, test: "TestDoors"},
	{id: "I03", what: "what a form can send", run: runDoors, test: "TestForeignOrigin"},
	{id: "I04", what: "another user of the machine", run: runDoors, test: "TestTokens"},
	{id: "I05", what: "a caller that is slow", test: "TestTimeOfABody"},
	{id: "I06", what: "a policy server that leads elsewhere", run: runRegoElsewhere, test: "TestURLs"},
	{id: "I07", what: "a policy server that answers nonsense", run: runRegoServer, test: "TestServerFails"},
	{id: "I08", what: "a mode that is none, and one that nobody satisfies", run: runRegoMode, test: "TestModes"},

	{id: "J01", what: "a policy that fails", run: runRegoFails, test: "TestOneFile"},
	{id: "J02", what: "a policy that reaches out, or takes for ever", run: runRegoReaches, test: "TestEndless"},
	{id: "J03", what: "a policy that sees another path", test: "TestChain"},
	{id: "J04", what: "a policy that sees the directory alone", tries: tries("", []string{"R/tree"}), test: "TestMoveIsJudged"},
	{id: "J05", what: "rules that are none", run: runBadRules, test: "TestBadRules"},
	{id: "J06", what: "an empty list", run: runEmptyAllow, test: "TestRootAloneIsWarned"},
	{id: "J07", what: "a script without an end", test: "TestHostile"},
	{id: "J08", what: "a script that climbs out", test: "TestHostile"},
	{id: "J09", what: "a script that goes on", test: "TestWaiting"},
	{id: "J10", what: "a value that changes", test: "TestMethods"},
}
