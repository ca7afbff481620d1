.PHONY: build check test race fuzz bench golden ci
STATICCHECK = go tool -modfile=internal/devtools/go.mod staticcheck
FUZZTIME ?= 30s

build: # a static binary
	CGO_ENABLED=0 go build -trimpath -o scrapestat ./cmd/scrapestat
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
bench:
	go test -run '^$$' -bench . -benchmem ./...
golden: # rewrite expected files; review the diff like code
	go test $$(git grep -l 'flag.Bool("update"' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|') -update
ci:
	bash .ci/run
