.PHONY: build release check house test race fuzz fuzz-goals soak soak-day bench lab lab-vllm golden ci ci-long
STATICCHECK = go tool -modfile=internal/devtools/go.mod staticcheck
FUZZTIME ?= 30s
SOAK ?= 30m

build: # a static binary without symbols
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o scrapestat ./cmd/scrapestat
release: # archives for six platforms with completions, man pages and licences, and their checksums, in dist/
	rm -rf dist && go run ./internal/release $(if $(PLATFORMS),-platforms $(PLATFORMS))
check:
	! gofmt -l $$(git ls-files '*.go') | grep .
	go vet ./...
	$(STATICCHECK) ./...
	go mod tidy -diff
	go test ./internal/lint
house: # the size and form of the tree against the limits of docs/decisions/0070-house.md; HOUSE=-cover-too, HOUSE=-twins
	go test ./internal/house -count=1 -run '^TestHouse$$' -v -house $(HOUSE)
test:
	go test ./...
race:
	go test -race -shuffle=on ./...
fuzz:
	STEPS=fuzz FUZZTIME=$(FUZZTIME) bash .ci/run
fuzz-goals: # each fuzz target until it has had the executions of .ci/fuzzgoals; goes on where it was ended
	bash .ci/fuzzlong
soak: # collect beside servers that fail and restart, in real time; the figure goes to $$SCRAPESTAT_FIGURES
	SCRAPESTAT_SOAK=$(SOAK) go test ./cmd/scrapestat -run '^TestSoak$$' -count=1 -timeout 0 -v
soak-day: # 24 h of ten servers at 3 Hz in simulated time
	go test ./internal/faults -run '^TestCatalogueFormats$$/^D12' -day.interval 333ms -count=1 -timeout 0 -v
lab:
	go run ./lab all
lab-vllm: # 6 GB on disk, and minutes for each start: before a release
	go run ./lab vllm
bench:
	go test -run '^$$' -bench . -benchmem ./...
golden: # rewrite expected files; review the diff like code
	go test ./catalog -run '^TestSavedPacks$$' -update
	go test $$(git grep -l 'flag.Bool("update"' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|') -update
ci:
	bash .ci/run
ci-long: # what takes too long for every change, under 90 minutes
	STEPS=long bash .ci/run
