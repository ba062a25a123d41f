module github.com/limitgate/limitgate/bench

go 1.26.0

replace github.com/limitgate/limitgate => ../

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/go-redis/redis_rate/v10 v10.0.1
	github.com/google/pprof v0.0.0-20260402051712-545e8a4df936
	github.com/limitgate/limitgate v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.49.0
)
