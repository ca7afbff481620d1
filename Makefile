VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
PLATFORMS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
.PHONY: build release check test race fuzz fuzz-goals soak soak-day bench golden ci
STATICCHECK = go tool -modfile=internal/devtools/go.mod staticcheck
FUZZTIME ?= 30s
SOAK ?= 30m

build: # a static binary
	CGO_ENABLED=0 go build -trimpath -o scrapestat ./cmd/scrapestat
release: # static binaries of all platforms with shell completions, man pages and checksums, in dist/
	rm -rf dist && mkdir -p dist/completions dist/man
	for p in $(PLATFORMS); do \
		name=scrapestat_$(VERSION)_$${p%/*}_$${p#*/}; case $$p in windows/*) name=$$name.exe;; esac; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o dist/$$name ./cmd/scrapestat || exit 1; \
	done
	for shell in bash zsh fish powershell; do go run ./cmd/scrapestat completion $$shell > dist/completions/scrapestat.$$shell || exit 1; done
	go run ./cmd/scrapestat man dist/man
	cd dist && sha256sum scrapestat_* > SHA256SUMS
check:
	! gofmt -l $$(git ls-files '*.go') | grep .
	go vet ./...
	$(STATICCHECK) ./...
	go mod tidy -diff
	go test ./internal/lint
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
bench:
	go test -run '^$$' -bench . -benchmem ./...
golden: # rewrite expected files; review the diff like code
	go test $$(git grep -l 'flag.Bool("update"' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|') -update
ci:
	bash .ci/run
