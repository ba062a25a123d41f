# The targets of this project. `make` alone lists them.
.DEFAULT_GOAL := help

VERSION := $(or $(shell git describe --tags --always --dirty 2>/dev/null),unknown)
COMMIT := $(shell git rev-parse HEAD 2>/dev/null)
DATE := $(shell TZ=UTC git show -s --date=iso-strict-local --format=%cd 2>/dev/null)
LIMITS ?= examples/limits.yaml
PKG ?= ./...
BENCH ?= .
export FUZZTIME ?= 30s
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.15.4
export GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Build and start on the sample limits; it prints what to type next
	bin/limitgate serve --limits $(LIMITS)

.PHONY: demo-traffic
demo-traffic: ## Send a realistic mix of checks to the limitgate of make run, for its page to show
	@go run ./examples/demo

# The version is passed by name, so a checkout that git refuses to read (another user's,
# or no checkout at all) builds as well. The tag leaves out gRPC's trace pages, which
# limitgate does not serve: their templates keep the linker from removing unused code, and
# the binary would be half as large again. deploy/image/Dockerfile and .goreleaser.yaml have
# the same flags; deploy/checks compares them.
.PHONY: build
build: ## Build the static binary bin/limitgate
	CGO_ENABLED=0 go build -tags grpcnotrace -trimpath -buildvcs=false \
		-ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)' \
		-o bin/limitgate ./cmd/limitgate

.PHONY: image
image: ## Build the image limitgate:VERSION by docker, with deploy/image/limits.yaml in it
	docker build -f deploy/image/Dockerfile -t limitgate:$(VERSION) \
		--build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) --build-arg DATE=$(DATE) .

.PHONY: package-files
package-files: build ## Write the manual page and completions that packages contain to bin/share
	@mkdir -p bin/share
	@bin/limitgate man >bin/share/limitgate.1
	@for shell in bash zsh fish; do bin/limitgate completion $$shell >bin/share/limitgate.$$shell || exit 1; done

.PHONY: packages
packages: ## Build archives, Debian packages, bills of materials and checksums of this commit in bin/packages; minutes
	go run $(GORELEASER) release --snapshot --clean --skip=publish

# The tag leaves out the calls of older Lambda runtimes. Packing runs on this machine,
# whatever the target of the binary.
.PHONY: build-lambda
build-lambda: GOARCH ?= amd64
build-lambda: ## Build bin/lambda.zip, the control plane for AWS Lambda (GOARCH=arm64: for that)
	CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH) go build -tags lambda.norpc -trimpath -buildvcs=false -ldflags '-s -w' \
		-o bin/bootstrap ./cmd/limitgate-lambda
	@GOOS= GOARCH= go run scripts/lambda_zip.go bin/bootstrap bin/lambda.zip

.PHONY: test
test: ## Run all tests against real redis servers, with the race detector; lint has vet
	@scripts/test.sh

.PHONY: test-long
test-long: ## Run the tests that take minutes
	folder=$$(scripts/provision.sh redis) && export LIMITGATE_REDIS_BIN=$$folder && \
		go test -tags long -run LongIsolation -count=1 -timeout=20m -v ./integration && \
		go test -tags long -run Long -count=1 -timeout=120m -v ./limit ./cluster

.PHONY: faults
faults: ## Break a real cluster under load in every way, some 5 minutes; prints a table. SECURE=1 for TLS, users and certificates
	scripts/provision.sh compiler && folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder \
		go test -tags long -run LongFaults -count=1 -timeout=30m -v ./integration $(if $(SECURE),-faults-secure)

# A binary of FROM is built in .cache/upgrade.
.PHONY: upgrade
upgrade: ## Share stores with the proxies of FROM=REVISION (the newest tag, or HEAD~1), upgrade, roll back; half a minute
	old=$$(scripts/build_revision.sh $(FROM)) && folder=$$(scripts/provision.sh redis) && \
		LIMITGATE_REDIS_BIN=$$folder UPGRADE_FROM=$$old \
		go test -tags long -run LongUpgrade -count=1 -timeout=10m -v ./integration

# JUDGE_SEED=SEED repeats a run, JUDGE_SEED=SEED/NUMBER one history of it.
.PHONY: judge
judge: export JUDGE_DECISIONS ?= 10000000
judge: ## Compare 10^7 decisions of all stores with the reference, on random limits files and histories
	scripts/provision.sh compiler && folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder \
		go test -run 'TestHistories$$' -count=1 -timeout=6h -v ./internal/judge

.PHONY: table-model
table-model: CHECKS ?= 5000
table-model: ## Check proxies after 100,000 random steps with a table of limits, in simulated time; minutes (CHECKS=400)
	go test -count=1 -timeout=6h -v -run 'TestTable$$' ./internal/tablemodel -rapid.checks=$(CHECKS)

.PHONY: simulate
simulate: ## Simulate 500 proxies over shards that fail, clients that come back, cells; prints tables
	@go test -C internal/simulation -count=1 -run 'TestFleet$$|TestProbes$$|TestClients$$|TestCells$$' -show

# As root on Debian and Ubuntu it installs clients with apt-get, unless LIMITGATE_APT is 0.
.PHONY: clients
clients: ## Drive Redis clients of many languages and the code of docs/clients.md, writes its matrix. SECURE=1 for TLS, users and certificates
	@LIMITGATE_APT=$${LIMITGATE_APT-1} scripts/provision.sh clients
	@go vet -C clients/go ./...
	@folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder \
		go test -tags clients -run 'TestMatrix|TestSnippets' -count=1 -timeout=20m -v ./clients $(if $(SECURE),-clients-secure)

.PHONY: middleware
middleware: ## Run the middleware for Express, Go, Python and Ruby with real servers
	@LIMITGATE_APT=$${LIMITGATE_APT-1} scripts/provision.sh clients
	@go vet -C clients/go/middleware ./...
	@go test -tags clients -run TestMiddleware -count=1 -timeout=10m -v ./clients

.PHONY: gateways
gateways: ## Ask through nginx, Caddy and HAProxy by the examples of docs/http.md: denials, forged headers, Limitgate killed
	@LIMITGATE_APT=$${LIMITGATE_APT-1} scripts/provision.sh gateways
	@folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder \
		go test -tags gateways -run TestGateways -count=1 -timeout=5m -v ./integration

.PHONY: helm
helm: ## Check the chart of Helm, and what it renders; builds helm, some minutes the first time (UPDATE=1: write the golden files)
	@go test -C deploy/checks -tags helm -run TestHelm -count=1 -timeout=20m -v ./... $(if $(UPDATE),-update)

.PHONY: alerts
alerts: ## Check the rules of Prometheus and run their tests
	@promtool=$$(scripts/provision.sh promtool) && cd deploy/prometheus && \
		"$$promtool" check rules limitgate-rules.yaml && "$$promtool" test rules limitgate-rules-test.yaml

.PHONY: browser
browser: build ## Open the page of a limitgate in Chromium: denials, explanations, simulator, axe-core
	@LIMITGATE_APT=$${LIMITGATE_APT-1} scripts/provision.sh browser
	@go vet -C internal/dashboard/browser -tags pictures ./...
	@go test -C internal/dashboard/browser -count=1 -timeout=5m -v ./...

.PHONY: pictures
pictures: build ## Write pictures of that page under the traffic of the demo to docs/img; a minute
	@LIMITGATE_APT=$${LIMITGATE_APT-1} scripts/provision.sh browser
	@mkdir -p docs/img
	@go test -C internal/dashboard/browser -tags pictures -count=1 -timeout=5m -run TestPictures -v ./... -pictures $(CURDIR)/docs/img

.PHONY: crowds
crowds: ## 10,000 idle connections, slow readers and writers, 1,000 new ones a second; half a minute
	folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder \
		go test -tags long -run LongCrowds -count=1 -timeout=10m -v ./integration

.PHONY: hostile
hostile: CLIENTS ?= 1000
hostile: ## Clients that read nothing, send rubbish or leave, under limits; 7 minutes; prints a table (CLIENTS=300)
	folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder \
		go test -tags long -run LongHostile -count=1 -timeout=30m -v ./integration -hostile-clients $(CLIENTS)

.PHONY: observing
observing: ## Measure what metrics, EMF and open pages cost: memory, a scrape, processor time; a minute
	folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder \
		go test -tags long -run LongObserving -count=1 -timeout=10m -v ./integration

.PHONY: plan-check
plan-check: ## Load a Redis as a plan of limitgate plan says, and print the part of a processor it takes; half a minute
	folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder \
		go test -tags long -run LongPlan -count=1 -timeout=5m -v ./cluster/doctor

.PHONY: outage-story
outage-story: ## Kill a master for a minute, and compare page, metrics, alerts and runbook; prints a timeline; two minutes
	promtool=$$(scripts/provision.sh promtool) && folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder LIMITGATE_PROMTOOL=$$promtool \
		go test -tags long -run LongRecordedOutage -count=1 -timeout=10m -v ./integration

.PHONY: tour
tour: build ## Walk through docs/tour.md in a terminal: a cluster, decisions, a change of limits, a failover
	@folder=$$(scripts/provision.sh redis) && PATH=$$folder:$$PATH scripts/tour.sh

.PHONY: tour-picture
tour-picture: ## Write docs/tour.svg, an animation of docs/tour.md
	@go run ./scripts/tour_picture

.PHONY: demo-aws
demo-aws: build ## Walk through docs/limits-as-data.md on the AWS emulator
	@scripts/demo_aws.sh

.PHONY: propagation
propagation: ## Measure how long a change in a table of limits takes to three proxies; a minute
	moto=$$(scripts/provision.sh aws) && folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder LIMITGATE_MOTO=$$moto/moto_server \
		go test -tags long -run LongPropagation -count=1 -timeout=10m -v ./integration

.PHONY: audit-aws
audit-aws: ## 1,000 changes of limits, each one object of the audit although the control plane dies; two minutes
	moto=$$(scripts/provision.sh aws) && folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder LIMITGATE_MOTO=$$moto/moto_server \
		go test -tags long -run LongAudit -count=1 -timeout=10m -v ./integration

.PHONY: cells-aws
cells-aws: ## Measure the units that three cells admit together, before and after they know of each other; three minutes
	moto=$$(scripts/provision.sh aws) && folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder LIMITGATE_MOTO=$$moto/moto_server \
		go test -tags long -run LongOverAdmission -count=1 -timeout=10m -v ./integration

.PHONY: faults-aws
faults-aws: ## Break the path of a table of limits to proxies in every way, rotate a secret, some 30 minutes; prints a table
	moto=$$(scripts/provision.sh aws) && folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder LIMITGATE_MOTO=$$moto/moto_server \
		go test -tags long -run 'LongTable|LongLambda|LongSecretRotation' -count=1 -timeout=60m -v ./integration

# Its tables are those of DynamoDB Local where that is available. It measures time, so
# leave the machine alone meanwhile.
.PHONY: cold-start
cold-start: ## Measure 10,000 tenants in a table, and decisions while they change; three minutes
	moto=$$(scripts/provision.sh aws) && folder=$$(scripts/provision.sh redis) && tables=$$(scripts/provision.sh dynamodb || true) && \
		LIMITGATE_REDIS_BIN=$$folder LIMITGATE_MOTO=$$moto/moto_server LIMITGATE_DYNAMODB=$$tables \
		go test -tags long -run 'LongColdStart|LongThrottledTable|LongSwap' -count=1 -timeout=20m -v ./integration

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s)
	@scripts/fuzz.sh

# The last full report is kept; bench-docs makes tables of it.
REPORT := .cache/bench.json

.PHONY: bench
bench: build-bench ## Measure Limitgate beside yardsticks, a quarter of an hour (ONLY="redis-p16 hot-*": some cases; REDIS_CELL=FILE: for redis-cell-*; ENVOY_RATELIMIT=FILE: for rls-*)
	@mkdir -p .cache
	@folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder \
		bin/limitgate-bench $(if $(ONLY),,--json $(REPORT)) $(if $(REDIS_CELL),--redis-cell '$(REDIS_CELL)') \
		$(if $(ENVOY_RATELIMIT),--envoy-ratelimit '$(ENVOY_RATELIMIT)') $(foreach case,$(ONLY),'$(case)')

.PHONY: bench-quick
bench-quick: build-bench ## The same in a minute, to see whether anything is out of order
	@folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder \
		bin/limitgate-bench --quick $(foreach case,$(ONLY),'$(case)')

.PHONY: bench-cores
bench-cores: build-bench ## Throughput by event loops, processes pinned from six cores on; half a minute
	@mkdir -p .cache
	@folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder \
		bin/limitgate-bench --json .cache/bench-cores.json 'cores-*'

.PHONY: bench-docs
bench-docs: build-bench ## Write the tables of docs/performance*.md from the last full `make bench`
	@bin/limitgate-bench --from $(REPORT) --docs docs >/dev/null
	@test ! -f .cache/bench-cores.json || bin/limitgate-bench --from .cache/bench-cores.json --docs docs >/dev/null

.PHONY: build-bench
build-bench: build
	@CGO_ENABLED=0 go build -C bench -trimpath -buildvcs=false -o ../bin/limitgate-bench ./limitgate-bench

.PHONY: microbench
microbench: ## Run the Go benchmarks of PKG (./...) that match BENCH (.)
	folder=$$(scripts/provision.sh redis) && LIMITGATE_REDIS_BIN=$$folder \
		go test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG) \
		$(if $(filter ./...,$(PKG)),&& go test -C bench -run '^$$' -bench '$(BENCH)' -benchmem ./...)

.PHONY: lint
lint: ## Check form and style
	@scripts/lint.sh

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in the code that the programs call
	@scripts/vulncheck.sh

.PHONY: sbom
sbom: build ## Print a bill of materials of bin/limitgate, in the JSON of CycloneDX
	@go run ./scripts/sbom bin/limitgate $(VERSION)

.PHONY: cfn-lint
cfn-lint: ## Check the CloudFormation templates
	@scripts/cfn_lint.sh

.PHONY: fmt
fmt: ## Format the Go files
	go run $(GOLANGCI_LINT) fmt ./...

.PHONY: provision
provision: ## Get redis-server and redis-cli and print where they are
	@scripts/provision.sh redis

.PHONY: clean
clean: ## Remove what was built and fetched
	rm -rf bin .cache
